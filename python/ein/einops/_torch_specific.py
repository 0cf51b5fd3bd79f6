"""What PyTorch's compiler is told of ein's functions."""

import torch

from .. import _steps
from ..torch import einsum  # noqa: F401


# The recipe depends on texts and numbers alone, so a trace takes it for a constant.
@torch._dynamo.assume_constant_result
def _recipe(operation, pattern, rank, names):
    return _steps.recipe(operation, pattern, rank, names)


def steps_of(operation, x, pattern, axes_lengths):
    found = _recipe(operation, pattern, len(x.shape), tuple(axes_lengths))
    return None if found is None else _steps.Steps(operation, pattern, found, x.shape, axes_lengths)
