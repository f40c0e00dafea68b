"""The default planners: every rank writes its own boxes, and only one rank a box that several have; every rank reads
the parts of stored boxes that it needs, so that the number of ranks may differ from that of the save."""

from __future__ import annotations

import dataclasses
import io
import json
import math
from collections.abc import Callable
from typing import Any

from ... import _C
from ..._checkpoint import tree
from ...serialization._composed import check_fits, copy_composed, described, require_storable
from ._composed import component_owner, divided, is_composed
from ._nested import flatten_state_dict, set_element
from ._shards import boxes_of, intersection, is_sharded, narrowed
from .metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    ComposedStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)  # fmt: skip
from .planner import (
    BytesIOWriteData,
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    TensorWriteData,
    WriteItem,
    WriteItemType,
)  # fmt: skip

__all__ = [
    "DefaultLoadPlanner", "DefaultSavePlanner", "create_default_global_load_plan", "create_default_global_save_plan",
    "create_default_local_load_plan", "create_default_local_save_plan",
]  # fmt: skip


def _dtype_of(value, boxes) -> _C.dtype:
    dtype = getattr(value, "dtype", None)
    return dtype if isinstance(dtype, _C.dtype) else boxes[0][1].dtype


def _bytes_item(fqn: str, text: str) -> WriteItem:
    return WriteItem(MetadataIndex(fqn), WriteItemType.BYTE_IO, bytes_io_data=BytesIOWriteData(len(text)))


def _write_items(fqn: str, value) -> list[WriteItem]:
    require_storable(value)
    if is_composed(value):
        text, components = divided(fqn, value)
        items = [_bytes_item(fqn, text), *(item for name, part in components.items() for item in _write_items(name, part))]
        return [dataclasses.replace(item, owner=fqn) for item in items]
    found = boxes_of(value)
    if found is None:
        return [_bytes_item(fqn, json.dumps(tree.encode(value)))]
    size, boxes = found
    whole = isinstance(value, _C.Tensor) and not hasattr(value, "__shards__")
    items = []
    for i, (offsets, tensor) in enumerate(boxes):
        chunk = ChunkStorageMetadata(_C.Size(offsets), _C.Size(tensor.shape))
        data = TensorWriteData(chunk, TensorProperties(_dtype_of(value, boxes), tensor.requires_grad), _C.Size(size))
        kind = WriteItemType.TENSOR if whole else WriteItemType.SHARD
        items.append(WriteItem(MetadataIndex(fqn, offsets, i), kind, tensor_data=data))
    return items


def create_default_local_save_plan(state_dict: dict[str, Any], is_coordinator: bool) -> SavePlan:
    """A plan that writes all values and boxes of this rank.

    Raises:
        ValueError: a value has the name of a component of a sparse, nested or quantized tensor.
    """
    plan = SavePlan([item for fqn, value in state_dict.items() for item in _write_items(fqn, value)])
    _check_owners([plan])
    return plan


def _check_owners(plans: list[SavePlan]) -> None:
    """Raises ValueError if a name is that of a component of a sparse, nested or quantized tensor, and that of another value, on any
    ranks; or that of such a tensor and of another value."""
    owners: dict[str, str | None] = {}
    for item in (item for plan in plans for item in plan.items):
        fqn = item.index.fqn
        if owners.setdefault(fqn, item.owner) != item.owner:
            owner = owners[fqn] or item.owner
            if owner == fqn:
                raise ValueError(f"[checkpoint] '{fqn}' is a sparse, nested or quantized tensor on one rank, another value on another one")
            raise ValueError(f"[checkpoint] '{fqn}' is the name of a component of '{owner}', and of a value")


def _same_tensor(a: WriteItem, b: WriteItem) -> bool:
    if a.tensor_data is None or b.tensor_data is None:
        return a.tensor_data is b.tensor_data
    same = a.tensor_data.size == b.tensor_data.size and a.tensor_data.chunk == b.tensor_data.chunk
    return same and a.tensor_data.properties.dtype is b.tensor_data.properties.dtype


def dedup_save_plans(plans: list[SavePlan], save_to_lowest_rank: bool = False) -> list[SavePlan]:
    """Assigns each box and value to one rank: the one with the fewest bytes so far, or the lowest one.

    Raises:
        ValueError: ranks have different tensors under one name.
    """
    _check_owners(plans)
    owners: dict[MetadataIndex, list[int]] = {}
    first: dict[MetadataIndex, WriteItem] = {}
    for rank, plan in enumerate(plans):
        for item in plan.items:
            known = first.setdefault(item.index, item)
            if not _same_tensor(known, item):
                raise ValueError(
                    f"[checkpoint] the ranks have different tensors as '{item.index.fqn}'. Parts of one tensor must have "
                    "__shards__(): get them from state_dict() or get_model_state_dict(), and do not move or copy them"
                )
            owners.setdefault(item.index, []).append(rank)
    load = [0] * len(plans)
    chosen: dict[MetadataIndex, int] = {}
    for index, ranks in owners.items():
        # Components of one tensor, whose value precedes them, are written by one rank.
        item = first[index]
        rank = None if item.owner is None else chosen.get(MetadataIndex(item.owner))
        if rank not in ranks:
            rank = min(ranks) if save_to_lowest_rank else min(ranks, key=lambda r: load[r])
        chosen[index] = rank
        load[rank] += item.tensor_storage_size() or (item.bytes_io_data.nbytes if item.bytes_io_data else 0)
    return [
        dataclasses.replace(plan, items=[item for item in plan.items if chosen[item.index] == rank])
        for rank, plan in enumerate(plans)
    ]


def create_default_global_save_plan(
    all_plans: list[SavePlan], rewrite_index_hints: bool = True
) -> tuple[list[SavePlan], Metadata]:
    """The checkpoint's contents. ``rewrite_index_hints``: whether the indices number the boxes of all ranks.

    Raises:
        ValueError: ranks have different values under one name.
    """
    _check_owners(all_plans)
    contents: dict[str, TensorStorageMetadata | BytesStorageMetadata] = {}
    plans = []
    for plan in all_plans:
        items = []
        for item in plan.items:
            fqn = item.index.fqn
            data = item.tensor_data
            if data is None:
                if isinstance(contents.setdefault(fqn, BytesStorageMetadata()), TensorStorageMetadata):
                    raise ValueError(f"[checkpoint] '{fqn}' is a tensor on one rank, and another value on another one")
            else:
                known = contents.setdefault(fqn, TensorStorageMetadata(data.properties, data.size, []))
                if not isinstance(known, TensorStorageMetadata) or known.size != data.size:
                    raise ValueError(f"[checkpoint] the ranks have different shapes of '{fqn}'")
                if known.properties.dtype is not data.properties.dtype:
                    raise ValueError(f"[checkpoint] the ranks have different dtypes of '{fqn}'")
                if rewrite_index_hints:
                    index = MetadataIndex(fqn, item.index.offset, len(known.chunks))
                    item = dataclasses.replace(item, index=index)
                known.chunks.append(data.chunk)
            items.append(item)
        plans.append(dataclasses.replace(plan, items=items))
    return plans, Metadata(contents)


def _check_complete(metadata: Metadata) -> None:
    for fqn, entry in metadata.state_dict_metadata.items():
        if not isinstance(entry, TensorStorageMetadata):
            continue
        numel = sum(math.prod(chunk.sizes) for chunk in entry.chunks)
        chunks = sorted(entry.chunks, key=lambda chunk: tuple(chunk.offsets))
        active: list[ChunkStorageMetadata] = []  # boxes that overlap the current one along the first dimension
        for chunk in chunks:
            if chunk.offsets:
                active = [other for other in active if other.offsets[0] + other.sizes[0] > chunk.offsets[0]]
            if any(intersection(c.offsets, c.sizes, chunk.offsets, chunk.sizes) for c in active):
                raise ValueError(f"[checkpoint] boxes of '{fqn}' overlap without being equal")
            active.append(chunk)
        if numel != math.prod(entry.size):
            raise ValueError(f"[checkpoint] the ranks have {numel} of {math.prod(entry.size)} elements of '{fqn}'")


def _supported(planner: str, **arguments) -> None:
    for name, (value, only) in arguments.items():
        if value is not only:
            raise NotImplementedError(f"[{planner}] {name}={value!r} is not supported")


class DefaultSavePlanner(SavePlanner):
    """Writes all values. Boxes that several ranks have are written by one of them.

    Args:
        flatten_state_dict: whether nested dicts become one level of names.
        dedup_save_to_lowest_rank: whether the lowest rank writes what several have, instead of that with the fewest bytes.
    """

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors: bool | None = None, dedup_save_to_lowest_rank: bool = False,
        enable_plan_caching: bool = False,
    ) -> None:  # fmt: skip
        _supported("DefaultSavePlanner", flatten_sharded_tensors=(flatten_sharded_tensors, True),
                   dedup_replicated_tensors=(dedup_replicated_tensors, None),
                   enable_plan_caching=(enable_plan_caching, False))  # fmt: skip
        self.flatten_state_dict = flatten_state_dict
        self.dedup_save_to_lowest_rank = dedup_save_to_lowest_rank
        self.mappings: dict = {}

    def set_up_planner(
        self, state_dict: dict[str, Any], storage_meta: StorageMeta | None = None, is_coordinator: bool = False
    ) -> None:
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict, self.is_coordinator = state_dict, is_coordinator
        self._boxes: dict = {}
        self._composed: dict = {}  # by name: what divided() returned for a sparse, nested or quantized tensor

    def create_local_plan(self) -> SavePlan:
        plan = create_default_local_save_plan(self.state_dict, self.is_coordinator)
        self.plan = dataclasses.replace(plan, planner_data=self.mappings) if self.flatten_state_dict else plan
        return self.plan

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        plans = dedup_save_plans(all_plans, self.dedup_save_to_lowest_rank)
        self.global_plan, metadata = create_default_global_save_plan(plans)
        if self.flatten_state_dict:
            merged: dict = {}
            for plan in plans:
                merged.update(plan.planner_data or {})
            metadata = dataclasses.replace(metadata, planner_data=merged)
        _check_complete(metadata)
        self.metadata = metadata
        return self.global_plan, metadata

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        self.plan = new_plan
        return new_plan

    def resolve_data(self, write_item: WriteItem) -> _C.Tensor | io.BytesIO:
        return self.transform_object(write_item, self.lookup_object(write_item.index))

    def lookup_object(self, index: MetadataIndex) -> Any:
        """The value, or this rank's box that begins at ``index.offset``, or a component of a sparse, nested or quantized tensor."""
        if index.fqn not in self.state_dict and is_composed(self.state_dict.get(component_owner(index.fqn))):
            return self._divided(component_owner(index.fqn))[1][index.fqn]
        value = self.state_dict[index.fqn]
        if index.offset is None:
            return value
        if index.fqn not in self._boxes:
            self._boxes[index.fqn] = {tuple(offsets): tensor for offsets, tensor in boxes_of(value)[1]}
        return self._boxes[index.fqn][tuple(index.offset)]

    def _divided(self, fqn: str) -> tuple[str, dict[str, _C.Tensor]]:
        if fqn not in self._composed:
            self._composed[fqn] = divided(fqn, self.state_dict[fqn])
        return self._composed[fqn]

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:  # noqa: A002 - PyTorch's name
        """The data to write: a tensor, or a value's bytes (JSON)."""
        if write_item.type is not WriteItemType.BYTE_IO:
            return object.detach()
        if is_composed(object):
            return io.BytesIO(self._divided(write_item.index.fqn)[0].encode())
        return io.BytesIO(json.dumps(tree.encode(object)).encode())


def create_default_local_load_plan(state_dict: dict[str, Any], metadata: Metadata, strict: bool = True) -> LoadPlan:
    """A plan that reads all values of the state dict; if not `strict`, only those that the checkpoint contains."""
    items: list[ReadItem] = []
    components: set[str] = set()  # which are read once, however many values name them
    for fqn, value in state_dict.items():
        require_storable(value)
        entry = metadata.state_dict_metadata.get(fqn)
        if entry is None:
            if strict:
                raise RuntimeError(f"Missing key in checkpoint state_dict: {fqn}.")
            continue
        if isinstance(entry, ComposedStorageMetadata) and not is_composed(value) and (is_sharded(value) or isinstance(value, _C.Tensor)):
            raise ValueError(
                f"[checkpoint] '{fqn}' is a sparse, nested or quantized tensor in the checkpoint, but a plain one in the state dict"
            )
        if isinstance(entry, BytesStorageMetadata):
            index = MetadataIndex(fqn)
            items.append(ReadItem(LoadItemType.BYTE_IO, index, _C.Size([0]), index, _C.Size([0]), _C.Size([0])))
            for name in entry.components if isinstance(entry, ComposedStorageMetadata) else ():
                if name not in components:
                    components.add(name)
                    items += _component_items(name, metadata.state_dict_metadata[name])
            continue
        if is_composed(value):
            raise ValueError(
                f"[checkpoint] '{fqn}' is a tensor of layout torch.strided in the checkpoint, but {described(value)} in the state dict"
            )
        found = boxes_of(value)
        if found is None:
            raise ValueError(
                f"[checkpoint] '{fqn}' is a tensor in the checkpoint, but a {type(value).__name__} in the state dict"
            )
        size, boxes = found
        if tuple(entry.size) != size:
            raise ValueError(f"Size mismatch between saved {entry.size} and current: {_C.Size(size)} for {fqn}")
        items += _read_items(fqn, entry, boxes)
    return LoadPlan(items)


def _read_items(fqn: str, entry: TensorStorageMetadata, boxes) -> list[ReadItem]:
    items = []
    for offsets, tensor in boxes:
        covered = 0
        for i, chunk in enumerate(entry.chunks):
            common = intersection(offsets, tensor.shape, chunk.offsets, chunk.sizes)
            if common is None:
                continue
            begin, lengths = common
            covered += math.prod(lengths)
            items.append(
                ReadItem(
                    LoadItemType.TENSOR,
                    MetadataIndex(fqn, offsets),
                    _C.Size([b - o for b, o in zip(begin, offsets, strict=True)]),
                    MetadataIndex(fqn, chunk.offsets, i),
                    _C.Size([b - o for b, o in zip(begin, chunk.offsets, strict=True)]),
                    _C.Size(lengths),
                )  # fmt: skip
            )
        if covered != tensor.numel():
            raise ValueError(f"[checkpoint] the checkpoint has {covered} of {tensor.numel()} elements of '{fqn}'")
    return items


def _component_items(name: str, entry: TensorStorageMetadata) -> list[ReadItem]:
    """Reads all boxes of a component into a tensor of its own, which an index without an offset names."""
    origin = _C.Size([0] * len(entry.size))
    return [
        ReadItem(LoadItemType.TENSOR, MetadataIndex(name), chunk.offsets, MetadataIndex(name, chunk.offsets, i), origin, chunk.sizes)
        for i, chunk in enumerate(entry.chunks)
        if math.prod(chunk.sizes)
    ]


def create_default_global_load_plan(all_plans: list[LoadPlan]) -> list[LoadPlan]:
    """The plans, unchanged."""
    return all_plans


class DefaultLoadPlanner(LoadPlanner):
    """Reads all values of the state dict in place.

    Args:
        flatten_state_dict: whether nested dicts become one level of names, as in saving.
        allow_partial_load: whether values that the checkpoint lacks are left unchanged.
    """

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True, allow_partial_load: bool = False
    ) -> None:
        _supported("DefaultLoadPlanner", flatten_sharded_tensors=(flatten_sharded_tensors, True))
        self.flatten_state_dict, self.allow_partial_load = flatten_state_dict, allow_partial_load
        self.original_state_dict: dict = {}
        self.mappings: dict = {}

    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        self.original_state_dict = state_dict
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict, self.metadata, self.is_coordinator = state_dict, metadata, is_coordinator
        self._boxes: dict = {}
        self._components: dict[str, _C.Tensor] = {}  # of sparse, nested and quantized tensors, by name
        self._composed: dict[str, Any] = {}  # the encodings of sparse, nested and quantized tensors, by name

    def create_local_plan(self) -> LoadPlan:
        return create_default_local_load_plan(self.state_dict, self.metadata, not self.allow_partial_load)

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        return create_default_global_load_plan(global_plan)

    def finish_plan(self, new_plan: LoadPlan) -> LoadPlan:
        return new_plan

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        fqn = read_item.dest_index.fqn
        entry = None if self.metadata is None else self.metadata.state_dict_metadata.get(fqn)
        if isinstance(entry, ComposedStorageMetadata):
            self._composed[fqn] = json.loads(value.read())
        else:
            self._replace(fqn, tree.decode(json.loads(value.read())))

    def _replace(self, fqn: str, loaded: Any) -> None:
        self.state_dict[fqn] = loaded
        if self.flatten_state_dict:
            set_element(self.original_state_dict, self.mappings[fqn], loaded)

    def resolve_tensor(self, read_item: ReadItem) -> _C.Tensor:
        return narrowed(self.lookup_tensor(read_item.dest_index), read_item.dest_offsets, read_item.lengths)

    def lookup_tensor(self, index: MetadataIndex) -> _C.Tensor:
        """This rank's box that begins at ``index.offset``; without an offset, a component of a sparse, nested or quantized tensor."""
        if index.offset is None:
            return self._component(index.fqn)
        if index.fqn not in self._boxes:
            boxes = boxes_of(self.state_dict[index.fqn])[1]
            self._boxes[index.fqn] = {tuple(offsets): tensor.detach() for offsets, tensor in boxes}
        return self._boxes[index.fqn][tuple(index.offset)]

    def _component(self, name: str) -> _C.Tensor:
        if name not in self._components:
            entry = self.metadata.state_dict_metadata[name]
            self._components[name] = _C.torch.empty(list(entry.size), dtype=entry.properties.dtype, device="cpu")
        return self._components[name]

    def commit_tensor(self, read_item: ReadItem, tensor: _C.Tensor) -> None:
        pass

    def _check_composed(self) -> None:
        """Raises RuntimeError if a sparse, nested or quantized tensor that was read does not fit into that of the state dict."""
        for fqn, encoded in self._composed.items():
            if is_composed(self.state_dict[fqn]):
                check_fits(fqn, self.state_dict[fqn], tree.decode(encoded, self._component))

    def finish_load(self) -> None:
        """Composes the sparse, nested and quantized tensors, and copies them into those of the state dict.

        Raises:
            RuntimeError: the layout or the sizes differ; none of these tensors has changed.
            ValueError: the checkpoint is damaged.
        """
        self._check_composed()
        for fqn, encoded in self._composed.items():
            loaded = tree.decode(encoded, self._component)
            if is_composed(self.state_dict[fqn]):
                copy_composed(fqn, self.state_dict[fqn], loaded)
            else:
                self._replace(fqn, loaded)
        self._composed, self._components = {}, {}


def parts_of(planner: LoadPlanner, plan: LoadPlan) -> list[tuple[LoadPlan, Callable[[], None]]]:
    """The plan in parts, each with a function to call when it has been read. The first one has what sparse, nested and quantized
    tensors are composed of, so that nothing of the state dict has changed if one of them does not fit."""
    if not isinstance(planner, DefaultLoadPlanner) or planner.metadata is None:
        return [(plan, lambda: None)]
    composed = [(k, v) for k, v in planner.metadata.state_dict_metadata.items() if isinstance(v, ComposedStorageMetadata)]
    names = {name for fqn, entry in composed for name in (fqn, *entry.components)}
    first = [item for item in plan.items if item.dest_index.fqn in names]
    if not first:
        return [(plan, lambda: None)]
    rest = [item for item in plan.items if item.dest_index.fqn not in names]
    parts = [(dataclasses.replace(plan, items=first), planner._check_composed)]
    return [*parts, (dataclasses.replace(plan, items=rest), lambda: None)] if rest else parts
