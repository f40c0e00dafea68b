"""torch.distributed.checkpoint: checkpoints that the ranks' engines write and read together, and that another number of
ranks can load. See docs/checkpoints.md."""

from ..._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "api": "CheckpointException",
    "default_planner": "DefaultLoadPlanner DefaultSavePlanner",
    "filesystem": "FileSystemReader FileSystemWriter",
    "hf_storage": "HuggingFaceStorageReader HuggingFaceStorageWriter QuantizedHuggingFaceStorageReader",
    "metadata": "BytesStorageMetadata ChunkStorageMetadata Metadata TensorStorageMetadata",
    "optimizer": "load_sharded_optimizer_state_dict",
    "planner": "LoadPlan LoadPlanner ReadItem SavePlan SavePlanner WriteItem",
    "state_dict_loader": "load load_state_dict",
    "state_dict_saver": "async_save save save_state_dict",
    "storage": "StorageReader StorageWriter",
}

__all__ = [  # noqa: F822 - imported at their first use
    "BytesStorageMetadata", "CheckpointException", "ChunkStorageMetadata", "DefaultLoadPlanner", "DefaultSavePlanner",
    "FileSystemReader", "FileSystemWriter", "HuggingFaceStorageReader", "HuggingFaceStorageWriter", "LoadPlan",
    "LoadPlanner", "Metadata", "QuantizedHuggingFaceStorageReader", "ReadItem", "SavePlan", "SavePlanner",
    "StorageReader", "StorageWriter", "TensorStorageMetadata", "WriteItem", "api", "async_save", "default_planner",
    "filesystem", "hf_storage", "load", "load_sharded_optimizer_state_dict", "load_state_dict", "metadata", "optimizer",
    "planner", "quantized_hf_storage", "save", "save_state_dict", "state_dict_loader", "state_dict_saver",
    "stateful", "storage",
]  # fmt: skip

_get, __dir__ = lazy_attributes(globals(), None, _NAMES)


def __getattr__(name: str):
    if name in ("FsspecReader", "FsspecWriter"):
        raise AttributeError(
            f"{name}: not implemented: the engine reads and writes files of its own host (docs/differences.md)"
        )
    return _get(name)
