"""load."""

from __future__ import annotations

import os
import warnings
from typing import Any

from . import _wire
from ._ranks import Ranks, check_alone
from .default_planner import DefaultLoadPlanner, parts_of
from .filesystem import FileSystemReader, storage_for
from .planner import LoadPlanner
from .state_dict_saver import _first_coordinates
from .stateful import Stateful
from .storage import StorageReader

__all__ = ["load", "load_state_dict"]


def load(
    state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike | None = None, storage_reader: StorageReader | None = None,
    planner: LoadPlanner | None = None, process_group=None, no_dist: bool = False,
) -> None:  # fmt: skip
    """Reads a checkpoint into the tensors of a state dict, in place; other values are replaced in the dict.

    Each rank's engine reads the parts of stored boxes that it needs, so that the number of ranks, and the division of the
    tensors, may differ from those of the save. All ranks of the group must call it. Objects with ``state_dict()`` and
    ``load_state_dict()`` receive the loaded state.

    Raises:
        CheckpointException: a rank failed; e.g. the checkpoint lacks a value, or has it in another shape.
    """
    reader = storage_for(checkpoint_id, storage_reader, FileSystemReader)
    keys = list(state_dict)
    values = {key: v.state_dict() if isinstance(v, Stateful) else v for key, v in state_dict.items()}
    _load(values, reader, planner, Ranks(process_group, check_alone(no_dist)))
    for key in keys:
        value = state_dict[key]
        if isinstance(value, Stateful):
            value.load_state_dict(values[key])
        else:
            state_dict[key] = values[key]


def _load(state_dict: dict[str, Any], reader: StorageReader, planner: LoadPlanner | None, ranks: Ranks) -> None:
    planner = planner or DefaultLoadPlanner()

    def local_plan() -> list:
        metadata = reader.read_metadata()
        planner.set_up_planner(state_dict, metadata, ranks.is_coordinator)
        reader.set_up_storage_reader(metadata, ranks.is_coordinator)
        return _wire.from_load_plan(reader.prepare_local_plan(planner.create_local_plan()))

    def global_plan(plans: list) -> list:
        made = planner.create_global_plan([_wire.to_load_plan(plan) for plan in plans])
        return [_wire.from_load_plan(plan) for plan in reader.prepare_global_plan(made)]

    plan = _wire.to_load_plan(ranks.run(local_plan, global_plan))

    def read() -> None:
        for part, check in parts_of(planner, planner.finish_plan(plan)):
            reader.read_data(part, planner).wait()
            check()
        planner.finish_load()

    ranks.run(read, lambda results: results)


def load_state_dict(
    state_dict: dict[str, Any], storage_reader: StorageReader, process_group=None, coordinator_rank: int = 0,
    no_dist: bool = False, planner: LoadPlanner | None = None,
) -> None:  # fmt: skip
    """The older name of load(); values with ``state_dict()`` are not converted."""
    warnings.warn("`load_state_dict` is deprecated and will be removed in future versions. Please use `load` instead.",
                  FutureWarning, stacklevel=2)  # fmt: skip
    _first_coordinates("load_state_dict", coordinator_rank)
    storage_reader.reset()
    _load(state_dict, storage_reader, planner, Ranks(process_group, no_dist))
