"""Data sets, samplers and DataLoader."""

from ..._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "dataset": (
        "ChainDataset ConcatDataset Dataset IterableDataset StackDataset Subset TensorDataset "
        "random_split"
    ),
    "collate": "default_collate default_convert",
    "pinning": "PinnedDataset",  # sets its methods
    "loader": "DataLoader get_worker_info prefetch",
    "progress_bar": "progress",
    "sampler": (
        "BatchSampler RandomSampler Sampler SequentialSampler SubsetRandomSampler WeightedRandomSampler"
    ),
}


__all__ = [  # noqa: F822 - some are imported at their first use
    "BatchSampler", "ChainDataset", "ConcatDataset", "DFIterDataPipe", "DataChunk", "DataLoader", "Dataset", "DistributedSampler",
    "IterDataPipe", "MapDataPipe", "argument_validation", "functional_datapipe", "guaranteed_datapipes_determinism",
    "non_deterministic", "runtime_validation", "runtime_validation_disabled",
    "IterableDataset", "PinnedDataset", "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset",
    "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler", "_DatasetKind", "default_collate",
    "default_convert", "get_worker_info", "prefetch", "progress", "random_split",
]  # fmt: skip

_MODULES = (
    "_utils", "augment", "collate", "dataloader", "datapipes", "dataset", "distributed", "graph", "graph_settings", "loader", "pinning",
    "progress_bar", "readers", "sampler",
)  # fmt: skip
__getattr__, __dir__ = lazy_attributes(globals(), _MODULES, _NAMES | {
    "dataloader": "_DatasetKind", "distributed": "DistributedSampler",
    "datapipes.datapipe": "DFIterDataPipe DataChunk IterDataPipe MapDataPipe",
    "datapipes._decorator": "argument_validation functional_datapipe guaranteed_datapipes_determinism non_deterministic "
    "runtime_validation runtime_validation_disabled",
})  # fmt: skip
