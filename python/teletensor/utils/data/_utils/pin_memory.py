"""Provides the names of torch.utils.data._utils.pin_memory."""

from .._workers.iterators import pin_memory

__all__ = ["pin_memory"]
