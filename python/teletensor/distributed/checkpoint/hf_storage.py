"""Checkpoints in Hugging Face's layout: safetensors files, with an index if there are several."""

from __future__ import annotations

import os
from typing import Any

from ... import _C
from ...checkpoint import _Source
from ._index import StoredBox
from .filesystem import FileSystemReader
from .metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter", "QuantizedHuggingFaceStorageReader"]


class HuggingFaceStorageReader(FileSystemReader):
    """Reads a folder with ``model.safetensors``, or with several files and ``model.safetensors.index.json``. Each rank reads
    only its parts.

    Args:
        thread_count: has no effect: one thread of the engine reads the files.
    """

    def __init__(self, path: str | os.PathLike, thread_count: int = 1) -> None:
        super().__init__(path)

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        contents: dict = {}
        storage: dict = {}
        for name, (file, dtype, shape) in _Source(self.path).tensors.items():
            size, origin = _C.Size(shape), _C.Size([0] * len(shape))
            chunk = ChunkStorageMetadata(origin, size)
            contents[name] = TensorStorageMetadata(TensorProperties(dtype), size, [chunk])
            storage[MetadataIndex(name, origin)] = StoredBox(file.rpartition("/")[2], name)
        return Metadata(contents, None, storage, StorageMeta(checkpoint_id=self.path))


class HuggingFaceStorageWriter:
    """Its constructor raises NotImplementedError; use teletensor.checkpoint.save, which writes safetensors files."""

    __not_implemented__ = "teletensor.checkpoint.save writes safetensors files, also of the ranks of a group"

    def __init__(self, *args, **kwargs):
        raise NotImplementedError(
            "[HuggingFaceStorageWriter] not supported: use teletensor.checkpoint.save with a full state dict"
        )


class QuantizedHuggingFaceStorageReader:
    """Its constructor raises NotImplementedError; HuggingFaceStorageReader reads files that are not quantized."""

    __not_implemented__ = "weights in blocks of 8-bit floats are not dequantized; HuggingFaceStorageReader reads other files"

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("[QuantizedHuggingFaceStorageReader] not supported")
