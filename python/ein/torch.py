"""ein for PyTorch: calls that PyTorch differentiates, einsum in compiled functions, layers.

`ein.einsum` and the other calls of `ein` take tensors of PyTorch as they are. Where one of them wants a gradient the call
comes here. Rearrangements are then PyTorch's own calls, as in ein.einops: what is a view stays one.
"""

import torch

from . import _ein


class _Call(torch.autograd.Function):
    """A call of ein as a node of PyTorch's graph. Its gradient is ein's."""

    @staticmethod
    def forward(ctx, name, given, words, *xs):
        ctx.name, ctx.given, ctx.words = name, given, words
        ctx.save_for_backward(*xs)
        detached = [x.detach() for x in xs]
        results = getattr(_ein, name)(*_filled(given, detached), **words)
        several = isinstance(results, tuple)
        ctx.several = several
        results = results if several else (results,)
        # PyTorch does not know that what ein returns views an operand.
        memory = {x.untyped_storage().data_ptr() for x in detached}
        results = tuple(y.clone() if y.untyped_storage().data_ptr() in memory else y for y in results)
        ctx.mark_non_differentiable(*[y for y in results if not (y.is_floating_point() or y.is_complex())])
        return results if several else results[0]

    @staticmethod
    def backward(ctx, *cotangents):
        xs = ctx.saved_tensors
        wanted = ctx.needs_input_grad[3:]
        if torch.is_grad_enabled() and any(g is not None and g.requires_grad for g in cotangents):
            return (None, None, None, *_differentiable_gradients(ctx, xs, cotangents, wanted))
        ours = [_ein.Tensor(x.detach()) for x in xs]
        for x, needed in zip(ours, wanted):
            x.requires_grad = needed
        results = getattr(_ein, ctx.name)(*_filled(ctx.given, ours), **ctx.words)
        pairs = [(y, g) for y, g in zip(results if ctx.several else (results,), cotangents)
                 if g is not None and y.requires_grad]
        if len(pairs) == 1:
            pairs[0][0].backward(_ein.Tensor(pairs[0][1].detach().contiguous()))
        elif pairs:
            sums = [_ein.reduce(y * _ein.Tensor(g.detach().contiguous()), "... ->", "sum") for y, g in pairs]
            total = sums[0]
            for one in sums[1:]:
                total = total + one
            total.backward()
        gradients = [None if x.grad is None else torch.from_dlpack(x.grad) for x in ours]
        return (None, None, None, *[g if needed else None for g, needed in zip(gradients, wanted)])


def _differentiable_gradients(ctx, xs, cotangents, wanted):
    """Of a gradient of a gradient: an einsum's own are einsums, PyTorch's here."""
    if ctx.name != "einsum":
        raise _ein.Error(f"{ctx.name}: PyTorch is asked for a derivative of its derivative, which ein.torch has for "
                         "einsum alone\n  help: differentiate ein.Tensor")
    with torch.enable_grad():
        y = _in_torch(xs, ctx.given[-1])
        found = iter(torch.autograd.grad(y, [x for x, needed in zip(xs, wanted) if needed], cotangents[0],
                                         create_graph=True))
    return [next(found) if needed else None for needed in wanted]


class _Place:
    """Stands for a tensor among arguments."""

    def __init__(self, number):
        self.number = number


def _emptied(given, xs):
    """The arguments with a place for each tensor, which goes to `xs`."""
    if isinstance(given, torch.Tensor):
        xs.append(given)
        return _Place(len(xs) - 1)
    if isinstance(given, (list, tuple)):
        return type(given)(_emptied(one, xs) for one in given)
    return given


def _filled(given, xs):
    if isinstance(given, _Place):
        return xs[given.number]
    if isinstance(given, (list, tuple)):
        return type(given)(_filled(one, xs) for one in given)
    return given


def _with_gradients(name, arguments, words):
    """A call some of whose operands want a gradient."""
    if name in ("rearrange", "repeat") and len(arguments) == 2:
        from . import einops

        x = einops._stacked(arguments[0])
        if isinstance(x, torch.Tensor) and einops._steps_of(name, x, arguments[1], words) is not None:
            return einops._apply(name, x, arguments[1], None, words)
    xs = []
    return _Call.apply(name, _emptied(arguments, xs), words, *xs)


def _letters(pattern):
    """The pattern of an einsum in PyTorch's letters; None where it has more than names."""
    inputs, arrow, output = pattern.partition("->")
    names = {}

    def side(text):
        return "".join(
            "..." if name == "..." else names.setdefault(name, chr(97 + len(names)) if len(names) < 26
                                                         else chr(39 + len(names)))
            for name in text.split())

    if not arrow or any(c in pattern for c in "()[]{}*=@+") or any(w.isdecimal() or w == "_" for w in pattern.split()):
        return None
    return ",".join(side(text) for text in inputs.split(",")) + "->" + side(output)


def _in_torch(xs, pattern):
    return torch.einsum(_letters(pattern), *xs)


def einsum(*operands_and_pattern, sums_alone=False):
    """Products, summed over the axes that the output lacks: `einsum(x, y, "i k, k j -> i j")`.

    In a function that torch.compile traces, a pattern of names alone is PyTorch's einsum, which it compiles with what is
    around it.
    """
    if (torch.compiler.is_compiling() or torch.jit.is_tracing()) and _letters(operands_and_pattern[-1]) is not None:
        return _in_torch(operands_and_pattern[:-1], operands_and_pattern[-1])
    return _ein.einsum(*operands_and_pattern, sums_alone=sums_alone)


def __getattr__(name):
    # Here and not above, as ein.einops imports this module.
    if name in ("Rearrange", "Reduce", "Repeat", "EinMix"):
        from .einops.layers import torch as layers

        return getattr(layers, name)
    raise AttributeError(f"module 'ein.torch' has no attribute '{name}'")
