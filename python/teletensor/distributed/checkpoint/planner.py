"""Planners decide which rank writes and reads which boxes. The classes have PyTorch's names and methods."""

from __future__ import annotations

import abc
import enum
import io
import math
from dataclasses import dataclass
from typing import Any

from ... import _C
from .metadata import ChunkStorageMetadata, Metadata, MetadataIndex, StorageMeta, TensorProperties

__all__ = [
    "BytesIOWriteData", "LoadItemType", "LoadPlan", "LoadPlanner", "ReadItem", "SavePlan", "SavePlanner",
    "TensorWriteData", "WriteItem", "WriteItemType",
]  # fmt: skip


class WriteItemType(enum.Enum):
    TENSOR = enum.auto()  # a whole tensor
    SHARD = enum.auto()  # a box of a tensor
    BYTE_IO = enum.auto()  # another value


class LoadItemType(enum.Enum):
    TENSOR = enum.auto()
    BYTE_IO = enum.auto()


@dataclass(frozen=True)
class BytesIOWriteData:
    """The size of a value that is not a tensor, in bytes."""

    nbytes: int


@dataclass(frozen=True)
class TensorWriteData:
    """The box that is written, and the whole tensor's properties and shape."""

    chunk: ChunkStorageMetadata
    properties: TensorProperties
    size: _C.Size


@dataclass(frozen=True)
class WriteItem:
    """One value or box to write."""

    index: MetadataIndex
    type: WriteItemType
    bytes_io_data: BytesIOWriteData | None = None
    tensor_data: TensorWriteData | None = None
    owner: str | None = None  # the sparse, nested or quantized tensor that the value describes or is a component of

    def tensor_storage_size(self) -> int | None:
        """The size of the box in bytes; None for other values."""
        if self.tensor_data is None:
            return None
        return math.prod(self.tensor_data.chunk.sizes) * self.tensor_data.properties.dtype.itemsize


@dataclass(frozen=True)
class ReadItem:
    """One value to read, or the part of a stored box that goes to a box of the state dict."""

    type: LoadItemType
    dest_index: MetadataIndex
    dest_offsets: _C.Size  # relative to the destination's box
    storage_index: MetadataIndex
    storage_offsets: _C.Size  # relative to the stored box
    lengths: _C.Size


@dataclass(frozen=True)
class SavePlan:
    """What one rank writes."""

    items: list[WriteItem]
    storage_data: Any = None
    planner_data: Any = None


@dataclass
class LoadPlan:
    """What one rank reads."""

    items: list[ReadItem]
    storage_data: Any = None
    planner_data: Any = None


class SavePlanner(abc.ABC):
    """Plans a save. The methods are called in this order; create_global_plan on the coordinator only.

    Plans are sent between ranks as plain data: ``planner_data`` must consist of None, bool, int, float, str, list, tuple
    and dict.
    """

    @abc.abstractmethod
    def set_up_planner(
        self, state_dict: dict[str, Any], storage_meta: StorageMeta | None = None, is_coordinator: bool = False
    ) -> None:
        """Receives the state dict."""

    @abc.abstractmethod
    def create_local_plan(self) -> SavePlan:
        """Returns what this rank would write."""

    @abc.abstractmethod
    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """Returns what each rank writes, and the checkpoint's contents."""

    @abc.abstractmethod
    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """Receives this rank's plan; returns the plan that is executed."""

    @abc.abstractmethod
    def resolve_data(self, write_item: WriteItem) -> _C.Tensor | io.BytesIO:
        """Returns the box, or another value's bytes."""


class LoadPlanner:
    """Plans a load. The methods are called in this order; create_global_plan on the coordinator only."""

    @abc.abstractmethod
    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        """Receives the state dict, and the checkpoint's contents."""

    @abc.abstractmethod
    def create_local_plan(self) -> LoadPlan:
        """Returns what this rank reads."""

    @abc.abstractmethod
    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """Returns what each rank reads."""

    @abc.abstractmethod
    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """Receives this rank's plan; returns the plan that is executed."""

    @abc.abstractmethod
    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Receives the bytes of a value that is not a tensor."""

    def resolve_bytes(self, read_item: ReadItem) -> io.BytesIO:
        raise NotImplementedError("LoadPlanner.resolve_bytes is not implemented")

    @abc.abstractmethod
    def resolve_tensor(self, read_item: ReadItem) -> _C.Tensor:
        """Returns the tensor into which the part is read."""

    @abc.abstractmethod
    def commit_tensor(self, read_item: ReadItem, tensor: _C.Tensor) -> None:
        """Called once the part's read was issued."""

    def finish_load(self) -> None:
        """Called once everything was read. PyTorch's planners have no such method."""
