"""Provides the names of torch.utils.data.dataloader."""

from enum import Enum

from ._workers.iterators import BaseIterator as _BaseDataLoaderIter
from ._workers.iterators import SerialIterator as _SingleProcessDataLoaderIter
from ._workers.iterators import WorkerIterator as _MultiProcessingDataLoaderIter
from .collate import default_collate, default_convert
from .loader import DataLoader, _InfiniteConstantSampler, get_worker_info

__all__ = [
    "DataLoader", "_BaseDataLoaderIter", "_InfiniteConstantSampler", "_MultiProcessingDataLoaderIter",
    "_SingleProcessDataLoaderIter", "default_collate", "default_convert", "get_worker_info",
]  # fmt: skip


class _DatasetKind(Enum):
    """The kinds of data sets: by index, or iterable."""

    Map = 0
    Iterable = 1
