"""Data sets, samplers and DataLoader."""

from ..._lazy import lazy_attributes
from .dataset import (
    ChainDataset, ConcatDataset, Dataset, IterableDataset, PinnedDataset, StackDataset, Subset, TensorDataset, random_split,
)  # fmt: skip
from . import _utils, dataloader, pinning
from .collate import default_collate, default_convert
from .loader import DataLoader, get_worker_info, prefetch
from .progress_bar import progress
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler, WeightedRandomSampler

__all__ = [  # noqa: F822 - some are imported at their first use
    "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler",
    "IterableDataset", "PinnedDataset", "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset",
    "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler", "dataloader", "default_collate",
    "default_convert", "get_worker_info", "prefetch", "progress", "random_split",
]  # fmt: skip

__getattr__, __dir__ = lazy_attributes(globals(), ("augment", "distributed", "readers"), {"distributed": "DistributedSampler"})
