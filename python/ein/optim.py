"""Optimizers, with the formulas of PyTorch's, and schedules of the learning rate.

    optimizer = ein.optim.AdamW(model.parameters(), learning_rate=1e-3, weight_decay=0.1)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""

from . import _ein, _public

globals().update(_public.names(_ein._optim))
__all__ = list(_public.names(_ein._optim))
