"""State of the engine's GPUs, settings of CUDA, and functions of PyTorch's own CUDA runtime, which this process does not have."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from typing import Any

from .. import _C
from .._lazy import set_module
from .._not_implemented import not_implemented
from ._devices import device_count, get_device_capability, get_device_properties, is_available
from .device_index import index_of
from .memory import mem_get_info, memory_stats, reset_peak_memory_stats

has_half, has_magma = True, False


class cudaStatus:  # noqa: N801 - PyTorch's name
    """Results of CUDA's functions."""

    SUCCESS: int = 0
    ERROR_NOT_READY: int = 34


class CudaError(RuntimeError):
    """An error of one of CUDA's functions."""

    def __init__(self, code: int):
        super().__init__(f"CUDA error {code} ({code})")


class DeferredCudaCallError(Exception):
    """A call that was made before CUDA was initialized failed."""


def check_error(res: int) -> None:
    """Raises CudaError for a result other than success."""
    if res != cudaStatus.SUCCESS:
        raise CudaError(res)


def _capabilities() -> list[str]:
    return ["{}{}".format(*get_device_capability(i)) for i in range(device_count())]


def get_arch_list() -> list[str]:
    """The architectures of the engine's GPUs, such as "sm_90", for which kernels are compiled when they are needed."""
    return sorted({f"sm_{capability}" for capability in _capabilities()})


def get_gencode_flags() -> str:
    """get_arch_list() as options of nvcc."""
    return " ".join(f"-gencode compute=compute_{name[3:]},code={name}" for name in get_arch_list())


def is_tf32_supported() -> bool:
    """Whether there is a GPU that multiplies in TF32: Ampere or later."""
    return is_available() and get_device_capability() >= (8, 0)


def get_allocator_backend() -> str:
    """Returns "native": the engine's caching pool."""
    return "native"


def device_memory_used(device: Any = None) -> int:
    """Bytes of the GPU that are in use, of all processes of the engine's machine."""
    free, total = mem_get_info(device)
    return total - free


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """memory_stats with a dict for each part of a name."""
    nested: dict[str, Any] = {}
    for name, value in memory_stats(device).items():
        *path, last = name.split(".")
        place = nested
        for part in path:
            place = place.setdefault(part, {})
        place[last] = value
    return nested


def get_per_process_memory_fraction(device: Any = None) -> float:
    """The fraction of the GPU's memory that this session may use."""
    limit = memory_stats(device)["session_limit_bytes"]
    return min(1.0, limit / get_device_properties(device).total_memory) if limit else 1.0


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Raises NotImplementedError unless it changes nothing: connect(memory_limit=...) sets the limit of a session."""
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    if fraction != get_per_process_memory_fraction(device):
        raise NotImplementedError("set_per_process_memory_fraction: use connect(memory_limit=...) to limit a session's memory")


_SYNC_MODES = ("default", "warn", "error")


def get_sync_debug_mode() -> int:
    """What calls do that wait for a value or an upload: 0: wait; 1: warn; 2: raise."""
    return _C.wait_policy()


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Sets whether calls that wait for a value or an upload warn (1, "warn") or raise RuntimeError (2, "error").

    It applies to all devices and threads. ``synchronize()`` is not concerned. See also ``torch.no_sync()``.
    """
    if isinstance(debug_mode, str):
        if debug_mode not in _SYNC_MODES:
            raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, `error`")
        debug_mode = _SYNC_MODES.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError("invalid value of debug_mode, expected 0,1 or 2")
    _C.set_wait_policy(debug_mode)


def host_memory_stats() -> OrderedDict[str, Any]:
    """Returns an empty dict: this process pins no memory."""
    return OrderedDict()


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """Returns an empty dict: this process pins no memory."""
    return {}


def reset_accumulated_host_memory_stats() -> None:
    """Has no effect: this process pins no memory."""


def reset_peak_host_memory_stats() -> None:
    """Has no effect: this process pins no memory."""


def ipc_collect() -> None:
    """Has no effect: GPU memory is never shared by CUDA handles."""


def reset_max_memory_cached(device: Any = None) -> None:
    """reset_peak_memory_stats, as in PyTorch, which deprecated this name."""
    warnings.warn(
        "torch.cuda.reset_max_memory_cached now calls torch.cuda.reset_peak_memory_stats, which resets /all/ peak memory stats.",
        FutureWarning,
        stacklevel=2,
    )
    reset_peak_memory_stats(device)


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether a GPU can copy from another one: the engine copies between any two of its GPUs."""
    for which in (device, peer_device):
        if not 0 <= index_of(which) < device_count():
            raise AssertionError(f"Invalid device id: {which}" if which is device else "Invalid peer device id")
    return index_of(device) != index_of(peer_device)


def _add(what: str, functions: str = "", classes: str = "", module: str = "teletensor.cuda") -> None:
    names: dict[str, Any] = {"__name__": module}
    not_implemented(names, what, functions, classes)
    globals().update({name: value for name, value in names.items() if name != "__name__"})


_NO_RUNTIME = "the GPUs are the engine's; this process has no CUDA runtime. Use torch.cuda.Stream, torch.cuda.CUDAGraph and torch.profiler"
_add(
    _NO_RUNTIME, "current_blas_handle current_solver_handle export_dot export_graph_data get_stream_from_external", "GreenContext"
)
_add(_NO_RUNTIME, classes="ExternalStream", module="teletensor.cuda.streams")
_ONE_POOL = "memory of GPUs belongs to the engine's pool, which all sessions share; connect(memory_limit=...) limits a session"
_add(_ONE_POOL, "caching_allocator_disabled caching_allocator_enable change_current_allocator use_mem_pool")
_add(_ONE_POOL, classes="CUDAPluggableAllocator MemPool", module="teletensor.cuda.memory")
_add(
    "the engine does not report it to clients; use its metrics teletensor_gpu_utilization_ratio and teletensor_gpu_memory_bytes, or "
    "nvidia-smi on its machine",
    "clock_rate list_gpu_processes memory_usage power_draw temperature utilization",
)  # fmt: skip


def default_generators() -> tuple:
    """The session's generator, repeated for each GPU."""
    from .. import default_generator
    return (default_generator,) * device_count()


set_module("teletensor.cuda", CudaError, DeferredCudaCallError, cudaStatus)
