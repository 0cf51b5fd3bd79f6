"""What PyTorch's compiler is told of ein's functions."""

import torch

from .. import _steps
from ..torch import einsum  # noqa: F401


# The recipe depends on texts and numbers alone, so a trace takes it as a constant.
@torch._dynamo.assume_constant_result
def recipe(operation, pattern, rank, names):
    return _steps.recipe(operation, pattern, rank, names)


def steps_of(operation, x, pattern, axes_lengths):
    found = recipe(operation, pattern, len(x.shape), tuple(axes_lengths))
    return found and _steps.Steps(operation, pattern, found, x.shape, axes_lengths)
