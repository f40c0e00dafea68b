"""Statistics and snapshots of memory. The functions accept the engine's CPU, "cpu", as a device too.

"Allocated" bytes belong to this session's tensors. "Reserved" bytes, and all other figures of ``memory_stats``, belong
to the GPU's pool, which all sessions of the engine share.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from typing import Any

from .. import _C, _connection
from .._lazy import defined_by
from ._devices import device_count, get_device_properties, is_initialized
from .device_index import device_code, index_of

__all__ = [
    "empty_cache", "max_memory_allocated", "max_memory_cached", "max_memory_reserved", "mem_get_info", "memory_allocated",
    "memory_cached", "memory_reserved", "memory_snapshot", "memory_stats", "memory_summary", "reset_accumulated_memory_stats",
    "reset_max_memory_allocated", "reset_peak_memory_stats",
]  # fmt: skip

# In the order of the results of the operator memory_stats.
_POOLS = ("all", "small_pool", "large_pool")
_LEVELS = ("allocated_bytes", "active_bytes", "inactive_split_bytes", "requested_bytes", "reserved_bytes")
_ACCUMULATED = ("num_allocations", "num_alloc_retries", "num_ooms", "num_device_alloc", "num_device_free")
_COUNTS = (*_ACCUMULATED, "limit_bytes")
_SESSION = ("free_bytes", "session_bytes.current", "session_bytes.peak", "session_limit_bytes")
_NAMES = (*(f"{level}.{p}.{w}" for level in _LEVELS for p in _POOLS for w in ("current", "peak")), *_COUNTS, *_SESSION)


_resets: tuple[Any, dict[int, dict[str, int]]] = (None, {})  # a session, and what _resets_of_session() returns


def _is_cpu(device) -> bool:
    return device is not None and not isinstance(device, int) and _C.device(device).type == "cpu"


def stats_of(code: int) -> OrderedDict[str, int]:
    """The statistics of the device with this number in instructions."""
    return _since_reset(code, named(_C.ops.memory_stats(code).tolist()))


def _since_reset(code: int, stats: OrderedDict[str, int]) -> OrderedDict[str, int]:
    for name, value in _resets_of_session().get(code, {}).items():
        stats[name] -= value
    return stats


def _resets_of_session() -> dict[int, dict[str, int]]:
    """The counters at the last reset in the current session, by the device's code."""
    global _resets
    if _resets[0] is not _connection._current:
        _resets = (_connection._current, {})
    return _resets[1]


def reset_accumulated(code: int) -> None:
    """Makes this process's statistics of a device count from now on. Waits for the engine, whose counters continue."""
    stats = named(_C.ops.memory_stats(code).tolist())
    _resets_of_session()[code] = {name: stats[name] for name in _ACCUMULATED}


def memory_stats(device=None) -> OrderedDict[str, int]:
    """The statistics of the pool under PyTorch's names, and ``session_bytes``. Waits for the engine.

    ``limit_bytes``: limit of the pool (``teletensord --memory-limit``). ``session_limit_bytes``: limit of this session
    over all devices. A limit of 0 means no limit.
    """
    return _since_reset(_code(device), named(request(device).tolist()))


def request(device=None) -> _C.Tensor:
    """The values of ``memory_stats`` as a tensor on the CPU, for a reader that does not wait yet."""
    return _C.ops.memory_stats(_code(device))


def _code(device: Any) -> int:
    return 0 if _is_cpu(device) else device_code(device)


def named(values: list[int]) -> OrderedDict[str, int]:
    """The values of ``request`` by name."""
    return OrderedDict(zip(_NAMES, values, strict=True))


def memory_allocated(device=None) -> int:
    """Bytes of this session's tensors on the GPU."""
    return memory_stats(device)["session_bytes.current"]


def max_memory_allocated(device=None) -> int:
    """The maximum of ``memory_allocated`` since ``reset_peak_memory_stats``."""
    return memory_stats(device)["session_bytes.peak"]


def reset_peak_memory_stats(device=None) -> None:
    """Resets ``max_memory_allocated``. The pool's peaks are shared by all sessions and are not reset."""
    _C.ops.reset_peak_memory(device_code(device))


reset_max_memory_allocated = reset_peak_memory_stats


def reset_accumulated_memory_stats(device=None) -> None:
    """Makes the counters of ``memory_stats``, such as ``num_ooms``, start at 0 for this process. Waits for the engine.

    The engine's own counters are for all sessions and continue.
    """
    reset_accumulated(_code(device))


def memory_reserved(device=None) -> int:
    """Bytes that the engine has reserved on the GPU, for all sessions."""
    return memory_stats(device)["reserved_bytes.all.current"]


def max_memory_reserved(device=None) -> int:
    """The maximum of ``memory_reserved`` since the engine started."""
    return memory_stats(device)["reserved_bytes.all.peak"]


memory_cached, max_memory_cached = memory_reserved, max_memory_reserved  # PyTorch's old names


def mem_get_info(device=None) -> tuple[int, int]:
    """Free and total bytes of the GPU, as reported by its driver."""
    return memory_stats(device)["free_bytes"], get_device_properties(device).total_memory


def empty_cache() -> None:
    """Releases unused memory that is cached for this session's streams. Does not wait for the engine.

    Memory of other sessions is kept; ``teletensor empty-cache`` empties the engine's pools completely.
    """
    for index in range(device_count() if is_initialized() else 0):
        _C.ops.empty_cache(device_code(index))


def _mebibytes(n: int) -> str:
    return f"{n / 2**20:,.1f} MiB"


def memory_summary(device=None, abbreviated: bool = False) -> str:
    """The statistics as a table."""
    stats = memory_stats(device)
    rows = [("this session's tensors", stats["session_bytes.current"], stats["session_bytes.peak"])]
    for level in _LEVELS:
        for pool in _POOLS[:1] if abbreviated else _POOLS:
            name = level.removesuffix("_bytes").replace("_", " ")
            label = f"pool, {name}" if pool == "all" else f"  of {pool.replace('_pool', '')} blocks"
            rows.append((label, stats[f"{level}.{pool}.current"], stats[f"{level}.{pool}.peak"]))
    lines = [("cpu" if _is_cpu(device) else f"cuda:{index_of(device)}").ljust(28) + "now".rjust(16) + "peak".rjust(16)]
    lines += [f"{label:28}{_mebibytes(now):>16}{_mebibytes(peak):>16}" for label, now, peak in rows]
    lines += [f"{name.removeprefix('num_').replace('_', ' '):28}{stats[name]:16,}" for name in _COUNTS[:-1]]
    return "\n".join(lines)


def memory_snapshot(mempool_id: tuple[int, int] | None = None, include_traces: bool = True) -> list[dict[str, Any]]:
    """The segments of all GPUs' pools, or of the CPU's pool if the engine has no GPU, in PyTorch's format. Waits.

    A block in use has the line that allocated it. Blocks of other users of the engine have neither a line nor their own
    size, and addresses are not those of the engine's memory. Of the CPU's blocks of up to 64 KiB only those are known as
    this session's that were recorded by ``memory._record_memory_history()``.

    Args:
        mempool_id: only the segments of a private pool.
        include_traces: whether blocks have lines.
    """
    from ._memory_snapshot import segments

    found = segments(None, include_traces)
    return [s for s in found if mempool_id is None or s["segment_pool_id"] == tuple(mempool_id)]


def _record_memory_history(enabled: str | None = "all", context: str | None = "all", stacks: str = "all",
                           max_entries: int = sys.maxsize, device=None, clear_history: bool = False,
                           compile_context: bool = False, global_record_annotations: bool = False,
                           skip_actions: list[str] | None = None, record_pinned_host_memory: bool = False,
                           record_cuda: bool = True) -> None:  # fmt: skip
    """Records the allocations and releases of this session's tensors on all devices, for ``_snapshot()``.

    Args:
        enabled: "all"; "state": snapshots have no history; None: stops recording, and keeps what was recorded.
        context: None: without lines.
        stacks: makes no difference: an event has the line of the program that issued the operation.
        max_entries: the number of last events that are kept; by default 262,144, at most 4,194,304. They take 32 bytes
            each of the session's memory.
        device: snapshots have the history of this device only; None: of all devices.
        clear_history: forgets the earlier events.
        skip_actions: events that snapshots omit.
        compile_context, global_record_annotations, record_pinned_host_memory: must be False.
        record_cuda: must be True.
    """
    from ._memory_snapshot import record_history

    unsupported = {"compile_context": compile_context, "global_record_annotations": global_record_annotations,
                   "record_pinned_host_memory": record_pinned_host_memory, "record_cuda": not record_cuda}  # fmt: skip
    for name, value in unsupported.items():
        if value:
            raise NotImplementedError(f"[_record_memory_history] {name}: the engine records tensors on all devices, and their lines")
    record_history(enabled, context, stacks, max_entries, clear_history, skip_actions, device)


def _snapshot(device=None, augment_with_fx_traces: bool = False) -> dict[str, Any]:
    """The pools' segments and the recorded history, as PyTorch's memory visualiser reads them. Waits for the engine.

    Args:
        device: a GPU or "cpu"; None: all GPUs, or the CPU if the engine has no GPU.
        augment_with_fx_traces: must be False.
    """
    from ._memory_snapshot import snapshot

    if augment_with_fx_traces:
        raise NotImplementedError("[_snapshot] augment_with_fx_traces: events have the line of the program, not of a graph")
    return snapshot(device)


def _dump_snapshot(filename: str = "dump_snapshot.pickle", augment_with_fx_traces: bool = False) -> None:
    """Writes ``_snapshot()`` to a file, for pytorch.org/memory_viz or ``torch/cuda/_memory_viz.py``."""
    from ._memory_snapshot import dump

    dump(filename, _snapshot(augment_with_fx_traces=augment_with_fx_traces))


__getattr__, __dir__ = defined_by(globals(), "status", "CUDAPluggableAllocator", "MemPool")
