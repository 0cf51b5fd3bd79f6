"""A drop-in for einops: `import ein.einops as einops`. Same names, keywords and errors, which have carets here.

Rearrangements and reductions are calls of the arrays' own library, so that views stay views, gradients flow and
torch.compile traces them; einsum of NumPy arrays, and of CPU tensors of PyTorch outside of a trace, is ein's.
"""

import sys

import numpy as np

from .. import _ein, _steps

__all__ = ["EinopsError", "asnumpy", "einsum", "pack", "parse_shape", "rearrange", "reduce", "repeat", "unpack"]


class EinopsError(_ein.Error, RuntimeError):
    """What is wrong with a call, with carets under the pattern."""


def _as_einops(error):
    converted = EinopsError(str(error))
    converted.kind, converted.spans = error.kind, error.spans
    return converted


def _torch_of(x):
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(x, torch.Tensor) else None


def _namespace(x):
    """The functions of an array's library, as the Array API standard names them."""
    if isinstance(x, np.ndarray):
        return np
    if hasattr(x, "__array_namespace__"):
        return x.__array_namespace__()
    raise EinopsError(f"Tensor type unknown to einops {type(x)}")


_AXES = {"min": "amin", "max": "amax", "sum": "sum", "mean": "mean", "prod": "prod", "any": "any", "all": "all"}


def _reduce_in_torch(reduction):
    def reduce_axes(x, axes):
        if reduction in ("mean", "sum", "amin", "amax") or reduction in ("min", "max"):
            if reduction == "mean" and not (x.is_floating_point() or x.is_complex()):
                raise NotImplementedError("reduce_mean is not available for non-floating tensors")
            return getattr(x, _AXES[reduction])(dim=axes)
        for axis in sorted(axes, reverse=True):
            x = getattr(x, reduction)(dim=axis)
        return x

    return reduce_axes


def _reduce_in_array_api(xp, x, reduction):
    if reduction == "mean" and xp is np and x.dtype.kind not in "fc":
        raise NotImplementedError("reduce_mean is not available for non-floating tensors")
    function = getattr(xp, reduction)
    return lambda array, axes: function(array, axis=axes)


def _stacked(x):
    """einops stacks lists, on a new first axis."""
    if not isinstance(x, list):
        return x
    if not x:
        raise TypeError("Rearrange/Reduce/Repeat can't be applied to an empty list")
    torch = _torch_of(x[0])
    return torch.stack(x) if torch is not None else _namespace(x[0]).stack([*x])


# What eager calls were in steps, by all that the steps depend on; emptied when it is full.
_known = {}
_most_known = 1024


def _steps_of(operation, x, pattern, axes_lengths):
    """The steps of a call of an array of this shape; None where ein is to compute it."""
    key = (operation, pattern, x.shape, tuple(axes_lengths.items()))
    try:
        return _known[key]
    except KeyError:
        pass
    found = _steps.recipe(operation, pattern, len(x.shape), tuple(axes_lengths))
    steps = found and _steps.Steps(operation, pattern, found, x.shape, axes_lengths)
    if len(_known) >= _most_known:
        _known.clear()
    _known[key] = steps
    return steps


def _apply(operation, tensor, pattern, reduction, axes_lengths):
    x = _stacked(tensor)
    torch = _torch_of(x)
    if torch is not None:
        if torch.compiler.is_compiling() or torch.jit.is_tracing():
            from . import _torch_specific

            steps = _torch_specific.steps_of(operation, x, pattern, axes_lengths)
        else:
            steps = _steps_of(operation, x, pattern, axes_lengths)
        if steps is not None:
            return _steps.in_torch(x, steps, reduction if callable(reduction) else _reduce_in_torch(reduction))
        # What einops has no word for, such as windows and sums of axes, is ein's.
        return _of_ein(operation, x, pattern, reduction, axes_lengths)
    if isinstance(x, _ein.Tensor):
        return _of_ein(operation, x, pattern, reduction, axes_lengths)
    xp = _namespace(x)
    steps = _steps_of(operation, x, pattern, axes_lengths)
    if steps is None:
        return _of_ein(operation, x, pattern, reduction, axes_lengths)
    if operation == "reduce" and not callable(reduction):
        reduction = _reduce_in_array_api(xp, x, reduction)
    return _steps.in_array_api(xp, x, steps, reduction)


def _of_ein(operation, x, pattern, reduction, axes_lengths):
    if operation == "reduce":
        return _ein.reduce(x, pattern, reduction, **axes_lengths)
    return getattr(_ein, operation)(x, pattern, **axes_lengths)


def _call(operation, tensor, pattern, reduction, axes_lengths):
    try:
        return _apply(operation, tensor, pattern, reduction, axes_lengths)
    except _ein.Error as error:
        if isinstance(error, EinopsError):
            raise
        raise _as_einops(error) from None


def rearrange(tensor, pattern, **axes_lengths):
    """Transposes, splits, merges, squeezes: `rearrange(x, "b (h w) c -> b c h w", h=8)`. A list is stacked first."""
    return _call("rearrange", tensor, pattern, None, axes_lengths)


def reduce(tensor, pattern, reduction, **axes_lengths):
    """Combines over the axes that the output lacks, by a name or a function f(tensor, axes)."""
    if reduction in ("rearrange", "repeat"):  # einops has these as reductions of no axis
        return _call(reduction, tensor, pattern, None, axes_lengths)
    if not callable(reduction) and reduction not in _AXES:
        raise EinopsError(f"Unknown reduction {reduction}. Expect one of {tuple(_AXES)}.")
    return _call("reduce", tensor, pattern, reduction, axes_lengths)


def repeat(tensor, pattern, **axes_lengths):
    """Repeats along axes that only the output has: `repeat(x, "h w -> h w c", c=3)`."""
    return _call("repeat", tensor, pattern, None, axes_lengths)


def einsum(*tensors_and_pattern):
    """Products, summed over the axes that the output lacks; the pattern comes last."""
    if len(tensors_and_pattern) <= 1:
        raise ValueError("`einops.einsum` takes at minimum two arguments: the tensors (at least one), followed by the pattern.")
    *tensors, pattern = tensors_and_pattern
    if not isinstance(pattern, str):
        raise ValueError("The last argument passed to `einops.einsum` must be a string, representing the einsum pattern.")
    try:
        if _torch_of(tensors[0]) is not None:
            from . import _torch_specific

            return _torch_specific.einsum(*tensors, pattern, sums_alone=True)
        if all(isinstance(x, np.ndarray) for x in tensors) and len({x.dtype for x in tensors}) > 1:
            dtype = np.result_type(*tensors)  # as np.einsum; ein's own einsum refuses two dtypes
            tensors = [x.astype(dtype, copy=False) for x in tensors]
        return _ein.einsum(*tensors, pattern, sums_alone=True)
    except _ein.Error as error:
        raise _as_einops(error) from None


def parse_shape(x, pattern):
    """The sizes of an array by the names of its axes; `_` is left out."""
    axes = pattern.replace("()", " 1 ").split()
    shape = x.shape
    if any("(" in axis or ")" in axis for axis in axes):
        raise EinopsError(f"Can't parse shape with composite axes: {pattern} {tuple(shape)}")
    named = [axis for axis in axes if axis.isidentifier() and axis != "_"]
    if len(named) != len(set(named)):
        raise EinopsError(f"Can't parse shape with an axis twice: {pattern} {tuple(shape)}")
    if "..." in axes and len(axes) - 1 <= len(shape):
        at = axes.index("...")
        axes = axes[:at] + ["_"] * (len(shape) - len(axes) + 1) + axes[at + 1:]
    if len(shape) != len(axes):
        raise EinopsError(f"Can't parse shape with different number of dimensions: {pattern} {tuple(shape)}")
    result = {}
    for axis, size in zip(axes, shape):
        if axis.isdecimal():
            if int(axis) != size:
                raise EinopsError(f"Length of anonymous axis does not match: {pattern} {tuple(shape)}")
        elif axis != "_":
            result[axis] = size
    return result


def asnumpy(tensor):
    """A NumPy array of a tensor's elements."""
    if _torch_of(tensor) is not None:
        return tensor.detach().cpu().numpy()
    return np.asarray(tensor)


def _parts(pattern, name):
    """How many axes stand before and behind the one `*`."""
    axes = pattern.split()
    if len(axes) != len(set(axes)):
        raise EinopsError(f'Duplicates in axes names in {name}(..., "{pattern}")')
    if "*" not in axes:
        raise EinopsError(f'No *-axis in {name}(..., "{pattern}")')
    for axis in axes:
        if axis != "*" and not (axis.isidentifier() and not axis.startswith("_") and not axis.endswith("_")):
            raise EinopsError(f'Invalid axis name {axis} in {name}(..., "{pattern}")')
    at = axes.index("*")
    return at, len(axes) - at - 1


def pack(tensors, pattern):
    """Joins arrays along the dimension that is `*`; the result, and what of their shapes it stands for."""
    before, behind = _parts(pattern, "pack")
    torch = _torch_of(tensors[0]) if len(tensors) > 0 else None
    flat, packed_shapes = [], []
    for i, x in enumerate(tensors):
        shape = x.shape
        if len(shape) < before + behind:
            raise EinopsError(
                f"packed tensor #{i} (enumeration starts with 0) has shape {tuple(shape)}, "
                f"while pattern {pattern} assumes at least {before + behind} axes")
        end = len(shape) - behind
        packed_shapes.append(shape[before:end])
        target = (*shape[:before], -1, *shape[end:])
        flat.append(x.reshape(target) if torch is not None else _namespace(x).reshape(x, target))
    if torch is not None:
        return torch.cat(flat, dim=before), packed_shapes
    return _namespace(flat[0]).concat(flat, axis=before), packed_shapes


def unpack(tensor, packed_shapes, pattern):
    """Cuts what pack joined; one size may be -1."""
    before, behind = _parts(pattern, "unpack")
    shape = tensor.shape
    if len(shape) != before + 1 + behind:
        raise EinopsError(f"unpack(..., {pattern}) received input of wrong dim with shape {tuple(shape)}")
    length = shape[before]
    lengths = []
    for part in packed_shapes:
        size = 1
        for one in part:
            if one == -1:
                size = -1
                break
            size = size * one
        lengths.append(size)
    if sum(size == -1 for size in lengths) > 1:
        raise EinopsError(f"unpack(..., {pattern}) received more than one -1 in {packed_shapes} and can't infer dimensions")
    starts = [0]
    for i, size in enumerate(lengths):
        if size == -1:
            size = length - sum(one for k, one in enumerate(lengths) if k != i)
        starts.append(starts[-1] + size)
    try:
        parts = []
        for i, part in enumerate(packed_shapes):
            index = (slice(None),) * before + (slice(starts[i], starts[i + 1]),)
            target = (*shape[:before], *part, *shape[before + 1:])
            piece = tensor[index]
            parts.append(piece.reshape(target) if _torch_of(tensor) is not None
                         else _namespace(tensor).reshape(piece, target))
        if starts[-1] != length:
            raise ValueError("sizes")
        return parts
    except Exception as error:
        raise EinopsError(
            f"Error during unpack(..., \"{pattern}\"): could not split axis of size {length} into requested "
            f"{packed_shapes}") from error
