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
    "BatchSampler", "ChainDataset", "ConcatDataset", "DFIterDataPipe", "DataChunk", "DataLoader", "Dataset", "DistributedSampler",
    "IterDataPipe", "MapDataPipe", "argument_validation", "functional_datapipe", "guaranteed_datapipes_determinism",
    "non_deterministic", "runtime_validation", "runtime_validation_disabled",
    "IterableDataset", "PinnedDataset", "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset",
    "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler", "dataloader", "default_collate",
    "default_convert", "get_worker_info", "prefetch", "progress", "random_split",
]  # fmt: skip

__getattr__, __dir__ = lazy_attributes(globals(), ("augment", "datapipes", "distributed", "readers"), {
    "distributed": "DistributedSampler", "datapipes.datapipe": "DFIterDataPipe DataChunk IterDataPipe MapDataPipe",
    "datapipes._decorator": "argument_validation functional_datapipe guaranteed_datapipes_determinism non_deterministic "
    "runtime_validation runtime_validation_disabled",
})  # fmt: skip
