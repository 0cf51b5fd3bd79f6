"""Rearrange, Reduce, Repeat and EinMix as modules of PyTorch."""

import torch

from .. import EinopsError, einsum, rearrange, reduce, repeat

__all__ = ["EinMix", "Rearrange", "Reduce", "Repeat"]


class _Layer(torch.nn.Module):
    def __init__(self, pattern, **axes_lengths):
        super().__init__()
        self.pattern = pattern
        self.axes_lengths = axes_lengths

    def _params(self):
        return [repr(self.pattern)]

    def __repr__(self):
        sizes = [f"{name}={size}" for name, size in self.axes_lengths.items()]
        return f"{type(self).__name__}({', '.join(self._params() + sizes)})"


class Rearrange(_Layer):
    """rearrange as a layer: `Rearrange("b (h w) c -> b c h w", h=8)`."""

    def forward(self, x):
        return rearrange(x, self.pattern, **self.axes_lengths)


class Repeat(_Layer):
    """repeat as a layer."""

    def forward(self, x):
        return repeat(x, self.pattern, **self.axes_lengths)


class Reduce(_Layer):
    """reduce as a layer: `Reduce("b c (h 2) (w 2) -> b c h w", "max")`."""

    def __init__(self, pattern, reduction, **axes_lengths):
        super().__init__(pattern, **axes_lengths)
        self.reduction = reduction

    def _params(self):
        return [repr(self.pattern), repr(self.reduction)]

    def forward(self, x):
        return reduce(x, self.pattern, self.reduction, **self.axes_lengths)


def _axes(side):
    return side.replace("(", " ").replace(")", " ").split()


class EinMix(torch.nn.Module):
    """A product with weights, summed over the axes that the output lacks: `EinMix("b c -> b d", weight_shape="c d",
    bias_shape="d", c=3, d=5)`. Weights begin as torch.nn.Linear's: uniform, with the variance of 1 / fan-in."""

    def __init__(self, pattern, weight_shape, bias_shape=None, **axes_lengths):
        super().__init__()
        self.pattern = pattern
        self.weight_shape = weight_shape
        self.bias_shape = bias_shape
        self.axes_lengths = axes_lengths
        left, _, right = pattern.partition("->")
        read, written, weight = _axes(left), _axes(right), weight_shape.split()
        if "(" in weight_shape or len(weight) != len(set(weight)):
            raise EinopsError(f"Parenthesis or repeated axes are not allowed in weight shape: {weight_shape!r}")
        for name in axes_lengths:
            if name not in read + written + weight:
                raise EinopsError(f"Axes {[name]} are not used in pattern")
        for name in weight:
            if name not in axes_lengths:
                raise EinopsError(f"Dimension {name} of weight should be specified")
            if name not in read + written:
                raise EinopsError(f"Weight axis {name} is not used in pattern")
        for name in written:
            if name not in read + weight and name != "...":
                raise EinopsError(f"Output axis {name} is in neither the input nor the weight")
        if not set(read) - {"..."} - set(written) <= set(weight):
            raise EinopsError("An axis that is summed must be one of the weight")
        # Composite axes are split before and joined after. The names are einops's.
        self.pre_reshape_pattern = f"{left} -> {' '.join(read)}" if "(" in left else None
        self.post_reshape_pattern = f"{' '.join(written)} -> {right}" if "(" in right else None
        self.einsum_pattern = f"{' '.join(read)}, {' '.join(weight)} -> {' '.join(written)}"
        fan_in = 1
        for name in weight:
            if name not in written:
                fan_in *= axes_lengths[name]
        bound = (3 / fan_in) ** 0.5
        shape = [axes_lengths[name] for name in weight]
        self.weight = torch.nn.Parameter(torch.zeros(shape).uniform_(-bound, bound), requires_grad=True)
        self.bias = None
        if bias_shape is not None:
            for name in bias_shape.split():
                if name not in written:
                    raise EinopsError(f"Bias axis {name} not present in output")
                if name not in axes_lengths:
                    raise EinopsError(f"Sizes for bias axis {name} should be provided")
            bias = [axes_lengths[name] if name in bias_shape.split() else 1 for name in written if name != "..."]
            if "..." in written:
                behind = written[written.index("...") + 1:]
                bias = bias[len(bias) - len(behind):]
            self.bias = torch.nn.Parameter(torch.zeros(bias).uniform_(-bound, bound), requires_grad=True)

    def forward(self, x):
        sizes = self.axes_lengths
        if self.pre_reshape_pattern is not None:
            names = _axes(self.pre_reshape_pattern.partition("->")[0])
            x = rearrange(x, self.pre_reshape_pattern, **{name: size for name, size in sizes.items() if name in names})
        y = einsum(x, self.weight, self.einsum_pattern)
        if self.bias is not None:
            y = y + self.bias
        if self.post_reshape_pattern is not None:
            names = _axes(self.post_reshape_pattern.partition("->")[0])
            y = rearrange(y, self.post_reshape_pattern, **{name: size for name, size in sizes.items() if name in names})
        return y

    def __repr__(self):
        sizes = "".join(f", {name}={size}" for name, size in self.axes_lengths.items())
        return f"EinMix({self.pattern!r}, {self.weight_shape!r}, {self.bias_shape!r}{sizes})"
