"""Modules: what a model is made of, parameters and other modules by name.

    class MLP(ein.nn.Module):
        def __init__(self, dim, inner):
            super().__init__()
            self.up = ein.nn.Linear(dim, inner)
            self.down = ein.nn.Linear(inner, dim)

        def forward(self, x):
            return self.down(ein.gelu(self.up(x)))
"""

from . import _ein, _public

globals().update(_public.names(_ein._nn))


class Module(_ein._nn.OpenModule):
    """A module of one's own. Modules, and tensors that require gradients, become parts of it when they become
    attributes, by their names; `forward` is what a call does."""

    def __setattr__(self, name, value):
        if isinstance(value, _ein._nn.AnyModule):
            self._add_module(name, value)
        elif isinstance(value, _ein.Tensor) and value.requires_grad:
            self._add_parameter(name, value)
        super().__setattr__(name, value)

    def forward(self, *x):
        raise NotImplementedError(f"{type(self).__name__} has no forward()")

    def __call__(self, *x, **words):
        return self.forward(*x, **words)


class ModuleList(Module):
    """Modules by their places, named "0", "1", ..."""

    def __init__(self, modules=()):
        super().__init__()
        self._modules = []
        for module in modules:
            self.append(module)

    def append(self, module):
        setattr(self, str(len(self._modules)), module)
        self._modules.append(module)

    def __len__(self):
        return len(self._modules)

    def __getitem__(self, place):
        return self._modules[place]

    def __iter__(self):
        return iter(self._modules)


class Sequential(ModuleList):
    """Layers one after the other, named "0", "1", ... A function stands among them as Function(f)."""

    def __init__(self, *layers):
        super().__init__(layers)

    def forward(self, x):
        for layer in self:
            x = layer(x)
        return x


class Function(Module):
    """A function of a tensor as a layer: Function(ein.gelu)."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class _PatternLayer(Module):
    def __init__(self, pattern, *others, **sizes):
        super().__init__()
        self._call = (pattern, *others), sizes

    def forward(self, x):
        others, sizes = self._call
        return self._operation(x, *others, **sizes)


class Rearrange(_PatternLayer):
    """Rearrange("b (h w) c -> b c h w", h=8)."""

    _operation = staticmethod(_ein.rearrange)


class Reduce(_PatternLayer):
    """Reduce("b c (h 2) (w 2) -> b c h w", "max")."""

    _operation = staticmethod(_ein.reduce)


class Repeat(_PatternLayer):
    """Repeat("b c -> b r c", r=3)."""

    _operation = staticmethod(_ein.repeat)


__all__ = [name for name in dir() if not name.startswith("_")]
