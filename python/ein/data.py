"""Tokens in memory or in mapped files, and the batches that training takes from them."""

from . import _ein, _public

globals().update(_public.names(_ein._data))
__all__ = list(_public.names(_ein._data))
