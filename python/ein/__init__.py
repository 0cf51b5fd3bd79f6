"""Named-axis tensor patterns: `einsum(x, y, "b s1 h, b s2 h -> b s1 s2")`.

Operands are ein.Tensor, NumPy arrays, or whatever has DLPack (PyTorch, JAX, CuPy), without a copy;
results are of the operands' kind. Every mistake is an ein.Error that says where it is.
"""

from . import _ein, _public, data, nn, optim
from ._ein import *  # noqa: F403
from ._ein import __version__

__all__ = [*_public.names(_ein), "data", "nn", "optim"]


def __getattr__(name):
    if name in ("einops", "torch"):
        import importlib

        return importlib.import_module("ein." + name)
    raise AttributeError(f"module 'ein' has no attribute '{name}'")
