"""torch.xpu: Intel GPUs. The engine computes on CPUs and CUDA GPUs: the module acts as PyTorch's does without the device."""

from __future__ import annotations

from collections import OrderedDict

from .._absent_device import AbsentDevice, answering, classes, raising
from .._lazy import lazy_attributes

__all__ = [
    "Event", "MemPool", "Stream", "StreamContext", "XPUGraph", "XPUPluggableAllocator", "can_device_access_peer",
    "change_current_allocator", "clock_rate", "current_device", "current_stream", "default_generators", "device",
    "device_count", "device_memory_used", "device_of", "empty_cache", "get_arch_list", "get_device_capability",
    "get_device_name", "get_device_properties", "get_gencode_flags", "get_per_process_memory_fraction", "get_rng_state",
    "get_rng_state_all", "get_stream_from_external", "graph", "graph_pool_handle", "init", "initial_seed",
    "is_available", "is_bf16_supported", "is_current_stream_capturing", "is_initialized", "is_tf32_supported",
    "list_gpu_processes", "make_graphed_callables", "manual_seed", "manual_seed_all", "max_memory_allocated",
    "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_reserved", "memory_snapshot", "memory_stats",
    "memory_stats_as_nested_dict", "memory_usage", "power_draw", "reset_accumulated_memory_stats",
    "reset_peak_memory_stats", "seed", "seed_all", "set_device", "set_per_process_memory_fraction", "set_rng_state",
    "set_rng_state_all", "set_stream", "stream", "streams", "synchronize", "temperature", "use_mem_pool", "utilization",
]  # fmt: skip

_NOT_COMPILED = "Torch not compiled with XPU enabled"
_DUMMY = "Tried to instantiate dummy base class "

answering(globals(), "xpu", bool, is_available=lambda: 0, is_initialized=lambda: 0, is_tf32_supported=lambda: 0,
          is_bf16_supported=lambda including_emulation=True: 0, is_current_stream_capturing=lambda: 0)  # fmt: skip
answering(globals(), "xpu", int, device_count=lambda: 0, max_memory_allocated=lambda device=None: 0,
          max_memory_reserved=lambda device=None: 0, memory_allocated=lambda device=None: 0,
          memory_reserved=lambda device=None: 0)  # fmt: skip
answering(globals(), "xpu", list, get_arch_list=lambda: 0, get_rng_state_all=lambda: 0, memory_snapshot=lambda mempool_id=None: 0)
answering(globals(), "xpu", str, get_gencode_flags=lambda: 0)
answering(globals(), "xpu", OrderedDict, memory_stats=lambda device=None: 0)
answering(globals(), "xpu", dict, memory_stats_as_nested_dict=lambda device=None: 0)
answering(globals(), "xpu", lambda: None, empty_cache=lambda: 0, manual_seed=lambda seed: 0, manual_seed_all=lambda seed: 0,
          seed=lambda: 0, seed_all=lambda: 0, set_rng_state=lambda new_state, device="xpu": 0,
          set_rng_state_all=lambda new_states: 0)  # fmt: skip
raising(
    globals(), "xpu", AssertionError, _NOT_COMPILED, init=lambda: 0, can_device_access_peer=lambda device, peer: 0,
    change_current_allocator=lambda allocator: 0, current_device=lambda: 0, current_stream=lambda device=None: 0,
    get_device_capability=lambda device=None: 0, get_device_name=lambda device=None: 0, get_device_properties=lambda device=None: 0,
    get_per_process_memory_fraction=lambda device=None: 0, get_rng_state=lambda device="xpu": 0,
    get_stream_from_external=lambda data_ptr, device=None: 0, initial_seed=lambda: 0, mem_get_info=lambda device=None: 0,
    reset_accumulated_memory_stats=lambda device=None: 0, reset_peak_memory_stats=lambda device=None: 0,
    set_device=lambda device: 0, set_per_process_memory_fraction=lambda fraction, device=None: 0,
    synchronize=lambda device=None: 0, _lazy_init=lambda: 0,
)  # fmt: skip
raising(
    globals(), "xpu", ImportError, "pyzes is required; install it with 'pip install pyzes'.", clock_rate=lambda device=None: 0,
    device_memory_used=lambda device=None: 0, list_gpu_processes=lambda device=None: 0, memory_usage=lambda device=None: 0,
    power_draw=lambda device=None: 0, temperature=lambda device=None: 0, utilization=lambda device=None: 0,
)  # fmt: skip
raising(globals(), "xpu", RuntimeError, f"{_DUMMY}_xpu_graph_pool_handle", graph_pool_handle=lambda: 0)
raising(
    globals(), "xpu", RuntimeError, f"{_DUMMY}XPUGraph",
    make_graphed_callables=lambda callables, sample_args, num_warmup_iters=3, allow_unused_input=False, pool=None: 0,
)  # fmt: skip
classes(
    globals(), "xpu", RuntimeError, f"{_DUMMY}{{name}}", MemPool=lambda allocator=None, use_on_oom=False, no_split=False: 0,
    XPUGraph=lambda keep_graph=False: 0,
)  # fmt: skip
classes(globals(), "xpu", RuntimeError, f"{_DUMMY}Stream", graph=lambda xpu_graph, pool=None, stream=None: 0)
classes(globals(), "xpu", AssertionError, _NOT_COMPILED, XPUPluggableAllocator=lambda path_to_lib_file, alloc_fn_name, free_fn_name: 0)


class device(AbsentDevice):  # noqa: N801 - PyTorch's name
    """Selects a device: entering it raises NotImplementedError, as there is none."""

    error = NotImplementedError("PyTorch was compiled without XPU support")
    __absent_device__ = "xpu"


class device_of(device):  # noqa: N801 - PyTorch's name
    """Selects the device of a tensor or storage: entering it raises NotImplementedError, as there is none."""

    def __init__(self, obj) -> None:
        super().__init__(obj)


class StreamContext:
    """Selects a stream; has no effect, as there are no streams."""

    __absent_device__ = "xpu"

    def __init__(self, stream: object) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type | None, value: BaseException | None, trace: object) -> None:
        return None


class use_mem_pool(device):  # noqa: N801 - PyTorch's name
    """Allocates from a pool: entering it raises AssertionError, as there is no device."""

    error = AssertionError(_NOT_COMPILED)

    def __init__(self, pool: object, device: object = None) -> None:
        super().__init__((pool, device))


def stream(stream: object) -> StreamContext:
    """A context that selects a stream; None has no effect."""
    return StreamContext(stream)


def set_stream(stream: object) -> None:
    """Selects a stream; None has no effect. Others raise AssertionError, as there is no device."""
    if stream is not None:
        raise AssertionError(_NOT_COMPILED)


default_generators: tuple = ()
stream.__absent_device__ = set_stream.__absent_device__ = "xpu"
__getattr__, __dir__ = lazy_attributes(globals(), ("streams",), {"streams": "Event Stream"})
