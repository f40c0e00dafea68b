"""Provides the names of torch.utils.data.dataloader."""

from collections.abc import Callable
from typing import Any, TypeVar

from ..._utils import ExceptionWrapper
from . import _utils
from ._workers.fetch import DatasetKind as _DatasetKind
from ._workers.iterators import BaseIterator as _BaseDataLoaderIter
from ._workers.iterators import SerialIterator as _SingleProcessDataLoaderIter
from ._workers.iterators import WorkerIterator as _MultiProcessingDataLoaderIter
from .collate import default_collate, default_convert
from .datapipes.datapipe import IterDataPipe, MapDataPipe
from .dataset import Dataset, IterableDataset
from .loader import DataLoader, _InfiniteConstantSampler, get_worker_info
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = [
    "BatchSampler", "DataLoader", "Dataset", "ExceptionWrapper", "IterDataPipe", "IterableDataset", "MapDataPipe", "RandomSampler",
    "Sampler", "SequentialSampler", "_BaseDataLoaderIter", "_DatasetKind", "_InfiniteConstantSampler",
    "_MultiProcessingDataLoaderIter",
    "_SingleProcessDataLoaderIter", "_collate_fn_t", "_utils", "_worker_init_fn_t", "default_collate", "default_convert",
    "get_worker_info",
]  # fmt: skip

_T = TypeVar("_T")
_worker_init_fn_t = Callable[[int], None]
_collate_fn_t = Callable[[list[_T]], Any]
