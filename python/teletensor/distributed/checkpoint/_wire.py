"""Plans, results and errors as plain data, which the object collectives send."""

from __future__ import annotations

from ... import _C
from .metadata import ChunkStorageMetadata, MetadataIndex, TensorProperties
from .planner import (
    BytesIOWriteData,
    LoadItemType,
    LoadPlan,
    ReadItem,
    SavePlan,
    TensorWriteData,
    WriteItem,
    WriteItemType,
)  # fmt: skip


def _index(index: MetadataIndex) -> list:
    return [index.fqn, None if index.offset is None else list(index.offset), index.index]


def _write_item(item: WriteItem) -> list:
    data, values = item.tensor_data, item.bytes_io_data
    tensor = None
    if data is not None:
        properties = [data.properties.dtype, data.properties.requires_grad]
        tensor = [list(data.chunk.offsets), list(data.chunk.sizes), *properties, list(data.size)]
    return [_index(item.index), item.type.name, None if values is None else values.nbytes, tensor, item.owner]


def _to_write_item(data: list) -> WriteItem:
    index, kind, nbytes, tensor, owner = data
    tensor_data = None
    if tensor is not None:
        offsets, sizes, dtype, requires_grad, size = tensor
        chunk = ChunkStorageMetadata(_C.Size(offsets), _C.Size(sizes))
        tensor_data = TensorWriteData(chunk, TensorProperties(dtype, requires_grad), _C.Size(size))
    return WriteItem(
        MetadataIndex(*index), WriteItemType[kind], None if nbytes is None else BytesIOWriteData(nbytes), tensor_data, owner
    )


def _read_item(item: ReadItem) -> list:
    sizes = [list(item.dest_offsets), list(item.storage_offsets), list(item.lengths)]
    return [item.type.name, _index(item.dest_index), _index(item.storage_index), *sizes]


def _to_read_item(data: list) -> ReadItem:
    kind, dest, storage, dest_offsets, storage_offsets, lengths = data
    return ReadItem(
        LoadItemType[kind], MetadataIndex(*dest), _C.Size(dest_offsets), MetadataIndex(*storage),
        _C.Size(storage_offsets), _C.Size(lengths),
    )  # fmt: skip


def from_save_plan(plan: SavePlan) -> list:
    return [[_write_item(item) for item in plan.items], plan.storage_data, plan.planner_data]


def to_save_plan(data: list) -> SavePlan:
    return SavePlan([_to_write_item(item) for item in data[0]], data[1], data[2])


def from_load_plan(plan: LoadPlan) -> list:
    return [[_read_item(item) for item in plan.items], plan.storage_data, plan.planner_data]


def to_load_plan(data: list) -> LoadPlan:
    return LoadPlan([_to_read_item(item) for item in data[0]], data[1], data[2])


def from_results(results: list) -> list:
    return [[_index(r.index), r.size_in_bytes, r.storage_data] for r in results]


def to_results(data: list) -> list:
    from .storage import WriteResult

    return [WriteResult(MetadataIndex(*index), size, storage) for index, size, storage in data]
