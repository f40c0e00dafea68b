"""save and async_save."""

from __future__ import annotations

import concurrent.futures
import contextlib
import enum
import os
import threading
import time
import warnings
import weakref
from typing import Any

from . import _wire
from ._ranks import Ranks, check_alone
from ._store_step import Reports
from .default_planner import DefaultSavePlanner
from .filesystem import FileSystemWriter, _Writes, storage_for
from .metadata import Metadata
from .planner import SavePlan, SavePlanner
from .stateful import Stateful
from .storage import StorageWriter

__all__ = ["AsyncCheckpointerType", "async_save", "save", "save_state_dict"]

_POLL = 0.02  # seconds between two polls of the files' status
_saves: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # number of asynchronous saves of each group
_active: dict[str, concurrent.futures.Future] = {}  # by path


class AsyncCheckpointerType(enum.Enum):
    """Where PyTorch writes an asynchronous checkpoint. Here the engine writes it."""

    THREAD = "thread"
    PROCESS = "process"


def _values(state_dict: dict[str, Any]) -> dict[str, Any]:
    return {key: value.state_dict() if isinstance(value, Stateful) else value for key, value in state_dict.items()}


def _await_previous(writer: StorageWriter) -> None:
    """Waits for an asynchronous save to the same path."""
    if isinstance(writer, FileSystemWriter) and (future := _active.get(writer.path)) is not None:
        concurrent.futures.wait([future])


class _Save:
    """A save from its plan to its completion."""

    def __init__(self, state_dict: dict[str, Any], writer: StorageWriter, planner: SavePlanner | None, ranks: Ranks):
        self.writer, self.planner, self.ranks = writer, planner or DefaultSavePlanner(), ranks
        self.state_dict = state_dict
        self.metadata: Metadata | None = None
        self.plan = _wire.to_save_plan(ranks.run(self._local_plan, self._global_plan))

    def _local_plan(self) -> list:
        coordinator = self.ranks.is_coordinator
        meta = self.writer.storage_meta()
        self.planner.set_up_planner(self.state_dict, meta, coordinator)
        self.writer.set_up_storage_writer(coordinator)
        plan: SavePlan = self.planner.create_local_plan()
        return _wire.from_save_plan(self.writer.prepare_local_plan(plan))

    def _global_plan(self, plans: list) -> list:
        made, self.metadata = self.planner.create_global_plan([_wire.to_save_plan(plan) for plan in plans])
        return [_wire.from_save_plan(plan) for plan in self.writer.prepare_global_plan(made)]

    def start(self):
        return self.writer.write_data(self.planner.finish_plan(self.plan), self.planner)

    def finish(self, results: list) -> None:
        self.writer.finish(self.metadata, [_wire.to_results(of_rank) for of_rank in results])

    def run(self) -> Metadata:
        def finish(results: list) -> list:
            self.finish(results)
            return [None] * self.ranks.size

        self.ranks.run(lambda: _wire.from_results(self.start().wait()), finish)
        return self.metadata if self.metadata is not None else Metadata({})


def save(
    state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike | None = None, storage_writer: StorageWriter | None = None,
    planner: SavePlanner | None = None, process_group=None, no_dist: bool = False, use_collectives: bool = True,
) -> Metadata:  # fmt: skip
    """Writes a state dict in parts: each rank's engine writes the boxes that only this rank has, and a share of the
    boxes that several ranks have.

    Waits until the checkpoint is complete; it then replaces the one at the path, atomically. All ranks of the group must
    call it. Without a group, this process saves alone. The result is the checkpoint's contents on the first rank.

    Args:
        state_dict: tensors, sharded values (FSDP's, DTensors; see ``_shards``), plain values, nested dicts of these, and
            objects with ``state_dict()`` and ``load_state_dict()``.
        checkpoint_id: the folder; see FileSystemWriter.

    Raises:
        CheckpointException: a rank failed. The previous checkpoint is unchanged.
    """
    _require_collectives("save", use_collectives)
    writer = storage_for(checkpoint_id, storage_writer, FileSystemWriter)
    _await_previous(writer)
    return _Save(_values(state_dict), writer, planner, Ranks(process_group, check_alone(no_dist))).run()


def _require_collectives(function: str, use_collectives: bool) -> None:
    if not use_collectives:
        raise NotImplementedError(f"[{function}] use_collectives=False is not supported")


def async_save(
    state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike | None = None, storage_writer: StorageWriter | None = None,
    planner: SavePlanner | None = None, process_group=None,
    async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD, async_stager=None, no_dist: bool = False,
    use_collectives: bool = True,
) -> concurrent.futures.Future:  # fmt: skip
    """Like save(), but returns once the engines have copied the tensors; the next steps run while they write.

    The returned future is complete when the checkpoint has replaced the previous one. Wait for it before
    destroy_process_group(). A later save to the same path waits for it.

    Raises:
        NotImplementedError: `async_stager`, a writer other than FileSystemWriter, ``AsyncCheckpointerType.PROCESS``.
    """
    _require_collectives("async_save", use_collectives)
    if async_stager is not None:
        raise NotImplementedError("[async_save] async_stager is not supported: the engine copies the tensors")
    if async_checkpointer_type is not AsyncCheckpointerType.THREAD:
        raise NotImplementedError(
            f"[async_save] {async_checkpointer_type} is not supported: the engine writes the files"
        )
    writer = storage_for(checkpoint_id, storage_writer, FileSystemWriter)
    if not isinstance(writer, FileSystemWriter):
        raise NotImplementedError(f"[async_save] expected a FileSystemWriter, got {type(writer).__name__}")
    _await_previous(writer)
    ranks = Ranks(process_group, check_alone(no_dist))
    saving = _Save(_values(state_dict), writer, planner, ranks)
    all_results: list = []
    writes: list = []

    def start() -> list:
        writer.in_background = True
        try:
            writes.append(saving.start())
        finally:
            writer.in_background = False
        return _wire.from_results(writes[0].results)

    def keep(results: list) -> list:
        all_results.extend(results)
        return [None] * ranks.size

    ranks.run(start, keep)
    reports = None
    if ranks.group is not None:
        timeout = ranks.group._timeout.total_seconds()
        _saves[ranks.group] = _saves.get(ranks.group, 0) + 1
        prefix = f"checkpoint/{_saves[ranks.group]}"
        reports = Reports(ranks.group.get_group_store(), prefix, ranks.rank, ranks.size, timeout)
    future: concurrent.futures.Future = concurrent.futures.Future()
    _active[writer.path] = future
    arguments = (future, writer.path, saving, writes[0], all_results, reports)
    threading.Thread(target=_finish_async, args=arguments, name="teletensor async_save").start()
    return future


def _finish_async(future, path: str, saving: _Save, writes: _Writes, results: list, reports: Reports | None) -> None:
    error: Exception | None = None
    try:
        while not writes.is_done():
            if reports is not None:
                reports.beat()
            time.sleep(_POLL)
        writes.wait()
    except Exception as e:  # noqa: BLE001 - the future has it
        error = e
    try:
        if reports is not None:
            reports.finish(None if error is None else str(error), lambda: saving.finish(results))
        elif error is None:
            saving.finish(results)
    except Exception as e:  # noqa: BLE001
        error = e  # contains the errors of all ranks
    with contextlib.suppress(KeyError):
        if _active[path] is future:
            del _active[path]
    if error is None:
        future.set_result(saving.metadata)
    else:
        future.set_exception(error)


def save_state_dict(
    state_dict: dict[str, Any], storage_writer: StorageWriter, process_group=None, coordinator_rank: int = 0,
    no_dist: bool = False, planner: SavePlanner | None = None,
) -> Metadata:  # fmt: skip
    """The older name of save(); values with ``state_dict()`` are not converted."""
    warnings.warn("`save_state_dict` is deprecated and will be removed in future versions. Please use `save` instead.",
                  FutureWarning, stacklevel=2)  # fmt: skip
    _first_coordinates("save_state_dict", coordinator_rank)
    _await_previous(storage_writer)
    storage_writer.reset()
    return _Save(state_dict, storage_writer, planner, Ranks(process_group, no_dist)).run()


def _first_coordinates(function: str, coordinator_rank: int) -> None:
    if coordinator_rank != 0:
        raise NotImplementedError(f"[{function}] expected coordinator_rank 0, got {coordinator_rank}")
