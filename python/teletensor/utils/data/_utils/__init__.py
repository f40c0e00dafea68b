"""Provides the names of torch.utils.data._utils."""

from . import collate

__all__ = ["collate"]
