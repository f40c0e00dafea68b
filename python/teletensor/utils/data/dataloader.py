"""Provides the names of torch.utils.data.dataloader."""

from .collate import default_collate, default_convert
from .loader import DataLoader, get_worker_info
from .loading import SerialIterator as _SingleProcessDataLoaderIter  # noqa: F401 - libraries use these names
from .loading import WorkerIterator as _MultiProcessingDataLoaderIter  # noqa: F401
from .loading import _Iterator as _BaseDataLoaderIter  # noqa: F401

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]
