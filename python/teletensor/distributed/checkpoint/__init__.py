"""torch.distributed.checkpoint: checkpoints that the ranks' engines write and read together, and that another number of
ranks can load. See docs/checkpoints.md."""

from __future__ import annotations

from . import state_dict
from .api import CheckpointException
from .default_planner import DefaultLoadPlanner, DefaultSavePlanner
from .filesystem import FileSystemReader, FileSystemWriter
from .hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter, QuantizedHuggingFaceStorageReader
from .metadata import BytesStorageMetadata, ChunkStorageMetadata, Metadata, TensorStorageMetadata
from .optimizer import load_sharded_optimizer_state_dict
from .planner import LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner, WriteItem
from .state_dict_loader import load, load_state_dict
from .state_dict_saver import async_save, save, save_state_dict
from .storage import StorageReader, StorageWriter

__all__ = [
    "BytesStorageMetadata", "CheckpointException", "ChunkStorageMetadata", "DefaultLoadPlanner", "DefaultSavePlanner",
    "FileSystemReader", "FileSystemWriter", "HuggingFaceStorageReader", "HuggingFaceStorageWriter", "LoadPlan",
    "LoadPlanner", "Metadata", "QuantizedHuggingFaceStorageReader", "ReadItem", "SavePlan", "SavePlanner", "StorageReader",
    "StorageWriter", "TensorStorageMetadata", "WriteItem", "async_save", "load", "load_sharded_optimizer_state_dict",
    "load_state_dict", "save", "save_state_dict", "state_dict",
]  # fmt: skip


def __getattr__(name: str):
    if name in ("FsspecReader", "FsspecWriter"):
        raise AttributeError(
            f"{name}: not implemented: the engine reads and writes files of its own host (docs/differences.md)"
        )
    raise AttributeError(f"module 'torch.distributed.checkpoint' has no attribute {name!r}")
