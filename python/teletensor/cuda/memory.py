"""Statistics of GPU memory.

"Allocated" bytes belong to this session's tensors. "Reserved" bytes, and all other figures of ``memory_stats``, belong
to the GPU's pool, which all sessions of the engine share.
"""

from __future__ import annotations

from collections import OrderedDict

from .. import _C
from .device_index import device_code, index_of

# In the order of the results of the operator memory_stats.
_POOLS = ("all", "small_pool", "large_pool")
_LEVELS = ("allocated_bytes", "active_bytes", "inactive_split_bytes", "requested_bytes", "reserved_bytes")
_COUNTS = ("num_allocations", "num_alloc_retries", "num_ooms", "num_device_alloc", "num_device_free", "limit_bytes")
_SESSION = ("free_bytes", "session_bytes.current", "session_bytes.peak", "session_limit_bytes")
_NAMES = (*(f"{level}.{p}.{w}" for level in _LEVELS for p in _POOLS for w in ("current", "peak")), *_COUNTS, *_SESSION)


def memory_stats(device=None) -> OrderedDict[str, int]:
    """The statistics of the pool under PyTorch's names, and ``session_bytes``. Waits for the engine.

    ``limit_bytes``: limit of the pool (``teletensord --memory-limit``). ``session_limit_bytes``: limit of this session
    over all devices. A limit of 0 means no limit.
    """
    return OrderedDict(zip(_NAMES, _C.ops.memory_stats(device_code(device)).tolist(), strict=True))


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


def memory_reserved(device=None) -> int:
    """Bytes that the engine has reserved on the GPU, for all sessions."""
    return memory_stats(device)["reserved_bytes.all.current"]


def max_memory_reserved(device=None) -> int:
    """The maximum of ``memory_reserved`` since the engine started."""
    return memory_stats(device)["reserved_bytes.all.peak"]


memory_cached, max_memory_cached = memory_reserved, max_memory_reserved  # PyTorch's old names


def mem_get_info(device=None) -> tuple[int, int]:
    """Free and total bytes of the GPU, as reported by its driver."""
    from . import get_device_properties

    return memory_stats(device)["free_bytes"], get_device_properties(device).total_memory


def empty_cache() -> None:
    """Releases unused memory that is cached for this session's streams. Does not wait for the engine.

    Memory of other sessions is kept; ``teletensor empty-cache`` empties the engine's pools completely.
    """
    from . import device_count, is_initialized

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
    lines = [f"cuda:{index_of(device)}".ljust(28) + "now".rjust(16) + "peak".rjust(16)]
    lines += [f"{label:28}{_mebibytes(now):>16}{_mebibytes(peak):>16}" for label, now, peak in rows]
    lines += [f"{name.removeprefix('num_').replace('_', ' '):28}{stats[name]:16,}" for name in _COUNTS[:-1]]
    return "\n".join(lines)
