"""Rearrangements as calls of the arrays' own library: reshape, reduce, permute, expand, reshape.

The recipe is made by ein's own grammar, of a pattern, a number of axes and the names of known sizes. What is done with
it here is plain Python on sizes, which may be symbols: torch.compile traces through it.
"""

import math

from . import _ein


def recipe(operation, pattern, rank, names):
    """For each dimension of the input and of the output its axes, (name, size or 0); None where ein is to compute it."""
    return _ein._recipe(operation, pattern, rank, names)


def _sizes(operation, pattern, inputs, shape, known):
    """The size of each axis, or an ein.Error."""
    sizes = dict(known)
    if len(inputs) != len(shape):
        _refuse(operation, pattern, shape, known)
    for axes, total in zip(inputs, shape):
        rest, unknown = 1, None
        for name, size in axes:
            size = size or sizes.get(name, 0)
            if size:
                sizes[name] = size
                rest = rest * size
            elif unknown is None:
                unknown = name
            else:
                _refuse(operation, pattern, shape, known)
        if unknown is None:
            if rest != total:
                _refuse(operation, pattern, shape, known)
        else:
            if len(axes) > 1 and (rest == 0 or total % rest != 0):
                _refuse(operation, pattern, shape, known)
            sizes[unknown] = total // rest if len(axes) > 1 else total
    return sizes


def _refuse(operation, pattern, shape, known):
    """Raises what ein says of such a call."""
    _ein._explain(operation, pattern, tuple(int(size) for size in shape), {k: int(v) for k, v in known.items()})
    raise AssertionError(f"{operation} {pattern!r}: sizes that ein accepts and these steps do not")


class Steps:
    """A call for arrays of this shape."""

    def __init__(self, operation, pattern, found, shape, known):
        inputs, outputs = found
        sizes = _sizes(operation, pattern, inputs, shape, known)
        read = [name for axes in inputs for name, _ in axes]
        written = [name for axes in outputs for name, _ in axes]
        for axes in outputs:
            for name, size in axes:
                if size:
                    sizes.setdefault(name, size)
        kept = [name for name in read if name in written]
        self.split = [sizes[name] for name in read]
        self.reduced = [i for i, name in enumerate(read) if name not in written]
        self.order = [kept.index(name) for name in written if name in kept]
        self.added = [i for i, name in enumerate(written) if name not in kept]
        self.whole = [sizes[name] for name in written]
        self.shape = [math.prod([sizes[name] for name, _ in axes]) for axes in outputs]
        self.is_split = any(len(axes) != 1 for axes in inputs)
        self.is_joined = any(len(axes) != 1 for axes in outputs)


def in_torch(x, steps, reduce):
    if steps.is_split:
        x = x.reshape(steps.split)
    if steps.reduced:
        x = reduce(x, steps.reduced)
    if steps.order != list(range(len(steps.order))):
        x = x.permute(steps.order)
    if steps.added:
        for place in steps.added:
            x = x.unsqueeze(place)
        x = x.expand(steps.whole)
    return x.reshape(steps.shape) if steps.is_joined else x


def in_array_api(xp, x, steps, reduce):
    if steps.is_split:
        x = xp.reshape(x, tuple(steps.split))
    if steps.reduced:
        x = reduce(x, tuple(steps.reduced))
    if steps.order != list(range(len(steps.order))):
        x = xp.permute_dims(x, tuple(steps.order))
    if steps.added:
        for place in steps.added:
            x = xp.expand_dims(x, axis=place)
        x = xp.broadcast_to(x, tuple(steps.whole))
    return xp.reshape(x, tuple(steps.shape)) if steps.is_joined else x
