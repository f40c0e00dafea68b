"""The contents of a checkpoint, in PyTorch's classes. They are stored as JSON (`_index`), not pickled."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ... import _C

__all__ = [
    "BytesStorageMetadata", "ChunkStorageMetadata", "Metadata", "MetadataIndex", "StorageMeta", "TensorProperties",
    "TensorStorageMetadata",
]  # fmt: skip


@dataclass
class ChunkStorageMetadata:
    """A box of a tensor: the index of its first element, and its shape."""

    offsets: _C.Size
    sizes: _C.Size


@dataclass
class TensorProperties:
    """Properties of a tensor other than its shape."""

    dtype: _C.dtype = _C.float32
    requires_grad: bool = False

    @staticmethod
    def create_from_tensor(tensor: _C.Tensor) -> TensorProperties:
        return TensorProperties(tensor.dtype, tensor.requires_grad)


@dataclass
class TensorStorageMetadata:
    """A stored tensor, and the boxes in which it is stored."""

    properties: TensorProperties
    size: _C.Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """A stored value that is not a tensor."""


@dataclass
class ComposedStorageMetadata(BytesStorageMetadata):
    """A stored sparse, nested or quantized tensor: a value that describes it, and the names of the tensors of which it is composed."""

    components: list[str] = field(default_factory=list)


STORAGE_TYPES = TensorStorageMetadata | BytesStorageMetadata


@dataclass(frozen=True)
class MetadataIndex:
    """Identifies a value, or a box of a tensor by the index of its first element. `index` is a hint."""

    fqn: str
    offset: _C.Size | None = None
    index: int | None = field(hash=False, compare=False, default=None)

    def __init__(self, fqn: str, offset: Sequence[int] | None = None, index: int | None = None):
        object.__setattr__(self, "fqn", fqn)
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "offset", None if offset is None else _C.Size(list(offset)))


@dataclass
class StorageMeta:
    """Describes a save or load."""

    checkpoint_id: str | os.PathLike | None = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """The contents of a checkpoint: values by name, and where the storage has each box and value."""

    state_dict_metadata: dict[str, STORAGE_TYPES]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None
