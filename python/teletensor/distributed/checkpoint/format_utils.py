"""torch.distributed.checkpoint.format_utils: conversions between files of torch.save and sharded checkpoints.

``python -m torch.distributed.checkpoint.format_utils dcp_to_torch|torch_to_dcp SOURCE TARGET`` converts from the command line.
"""

from __future__ import annotations

import os
from typing import Any

from ... import _C
from ..._layouts import require_strided
from ...futures import Future
from .. import _collectives
from .._world import get_rank, is_initialized
from ._nested import flatten_state_dict, insert_element
from ._ranks import Ranks
from ._shards import boxes_of, narrowed
from .default_planner import DefaultLoadPlanner, _dtype_of
from .filesystem import FileSystemReader, FileSystemWriter
from .metadata import (
    ChunkStorageMetadata,
    ComposedStorageMetadata,
    Metadata,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from .planner import LoadItemType, LoadPlan, LoadPlanner
from .state_dict_loader import _load
from .state_dict_saver import _Save
from .storage import StorageReader

__all__ = ["BroadcastingTorchSaveReader", "DynamicMetaLoadPlanner", "dcp_to_torch_save", "torch_save_to_dcp"]


class _WholePlanner(DefaultLoadPlanner):
    """Loads all of a checkpoint into an empty state dict, which receives the nesting of the saved one."""

    def set_up_planner(self, state_dict: dict, metadata: Metadata | None = None, is_coordinator: bool = False) -> None:
        if state_dict:
            raise AssertionError("expected an empty state dict")
        components = {
            name
            for entry in metadata.state_dict_metadata.values()
            if isinstance(entry, ComposedStorageMetadata)
            for name in entry.components
        }
        flat: dict[str, Any] = {
            fqn: _C.torch.empty(list(entry.size), dtype=entry.properties.dtype)
            if isinstance(entry, TensorStorageMetadata)
            else None
            for fqn, entry in metadata.state_dict_metadata.items()
            if fqn not in components
        }
        paths = metadata.planner_data or {}
        for fqn, value in flat.items():
            insert_element(state_dict, tuple(paths.get(fqn, (fqn,))), value)
        self.original_state_dict, self.state_dict = state_dict, flat
        self.mappings = {fqn: tuple(paths.get(fqn, (fqn,))) for fqn in flat}
        self.metadata, self.is_coordinator = metadata, is_coordinator
        self._boxes, self._components, self._composed = {}, {}, {}


class DynamicMetaLoadPlanner(DefaultLoadPlanner):
    """Takes the sizes of the tensors from the state dict, for files that do not list their contents. Tensors only."""

    def set_up_planner(self, state_dict: dict, metadata: Metadata | None = None, is_coordinator: bool = False) -> None:
        super().set_up_planner(state_dict, metadata, is_coordinator)
        contents: dict[str, Any] = {}
        require_strided(type(self).__name__, *self.state_dict.values())
        for fqn, value in self.state_dict.items():
            found = boxes_of(value)
            if found is None:
                raise RuntimeError(
                    f"Non-tensor value identified at {fqn}. At this time {type(self).__name__} only supports loading Tensors."
                )
            size, boxes = found
            whole = ChunkStorageMetadata(_C.Size([0] * len(size)), _C.Size(size))
            contents[fqn] = TensorStorageMetadata(TensorProperties(_dtype_of(value, boxes)), _C.Size(size), [whole])
        self.metadata = Metadata(contents)


class BroadcastingTorchSaveReader(StorageReader):
    """Reads a file of torch.save on one rank, which broadcasts each tensor. Used with DynamicMetaLoadPlanner. Tensors only."""

    def __init__(self, checkpoint_id: str | os.PathLike | None = None, coordinator_rank: int = 0) -> None:
        self.checkpoint_id, self.coordinator_rank = checkpoint_id, coordinator_rank

    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        self.checkpoint_id = self.checkpoint_id if checkpoint_id is None else checkpoint_id

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Returns no contents: the planner makes them from the state dict."""
        return Metadata({}, storage_meta=StorageMeta(self.checkpoint_id))

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        self.is_coordinator = is_coordinator
        if is_coordinator and is_initialized() and get_rank() != self.coordinator_rank:
            raise AssertionError(f"Coordinator rank mismatch: expected {self.coordinator_rank}, got {get_rank()}")
        if self.checkpoint_id is None:
            raise AssertionError("checkpoint_id must be set before setting up storage reader")

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future:
        """Each rank receives each whole tensor once, and keeps the parts that its plan names."""
        from ...serialization import load

        saved: dict[str, Any] = {}
        if self.is_coordinator:
            saved = load(self.checkpoint_id, map_location="cpu", weights_only=False)
            if planner.flatten_state_dict:
                saved, _ = flatten_state_dict(saved)
        items: dict[str, list] = {}
        for item in plan.items:
            if item.type is LoadItemType.BYTE_IO:
                raise RuntimeError(
                    f"Non-tensor value identified at {item.storage_index.fqn}. At this time {type(self).__name__} only supports "
                    "loading Tensors."
                )
            items.setdefault(item.storage_index.fqn, []).append(item)
        for fqn, entry in planner.metadata.state_dict_metadata.items():  # equal on all ranks, unlike the plans
            whole = saved[fqn].detach() if self.is_coordinator else _C.torch.empty(list(entry.size), dtype=entry.properties.dtype)
            if tuple(whole.shape) != tuple(entry.size):
                raise ValueError(f"Size mismatch between saved {tuple(whole.shape)} and current: {tuple(entry.size)} for {fqn}")
            if is_initialized():
                whole = whole.to(entry.properties.dtype).contiguous()
                _collectives.broadcast(whole, src=self.coordinator_rank)
            for item in items.get(fqn, []):
                target = planner.resolve_tensor(item).detach()
                target.copy_(narrowed(whole, item.storage_offsets, item.lengths))
                planner.commit_tensor(item, target)
        done = Future()
        done.set_result(None)
        return done

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        return os.path.isfile(checkpoint_id)


def dcp_to_torch_save(dcp_checkpoint_dir: str | os.PathLike, torch_save_path: str | os.PathLike) -> None:
    """Writes the contents of a sharded checkpoint as one file of torch.save. Call it on one rank."""
    from ...serialization import save

    state_dict: dict[str, Any] = {}
    _load(state_dict, FileSystemReader(dcp_checkpoint_dir), _WholePlanner(), Ranks(no_dist=True))
    save(state_dict, torch_save_path)


def torch_save_to_dcp(torch_save_path: str | os.PathLike, dcp_checkpoint_dir: str | os.PathLike) -> None:
    """Writes the contents of a file of torch.save as a sharded checkpoint. Call it on one rank."""
    from ...serialization import load

    state_dict = load(torch_save_path, map_location="cpu", weights_only=False)
    _Save(state_dict, FileSystemWriter(dcp_checkpoint_dir), None, Ranks(no_dist=True)).run()


def _main() -> None:
    import argparse

    parser = argparse.ArgumentParser(prog="python -m torch.distributed.checkpoint.format_utils", description=__doc__)
    parser.add_argument("mode", choices=["torch_to_dcp", "dcp_to_torch"], help="Conversion mode")
    parser.add_argument("src", help="Path to the source model")
    parser.add_argument("dst", help="Path to the destination model")
    args = parser.parse_args()
    to_dcp = args.mode == "torch_to_dcp"
    if not (os.path.isfile(args.src) if to_dcp else os.path.isdir(args.src)):
        parser.exit(1, f"No checkpoint found at {args.src}. Skipping conversion.\n")
    (torch_save_to_dcp if to_dcp else dcp_to_torch_save)(args.src, args.dst)


if __name__ == "__main__":
    _main()
