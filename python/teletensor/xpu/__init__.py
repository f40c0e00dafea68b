"""torch.xpu: Intel GPUs. The engine computes on CPUs and CUDA GPUs, so none is ever available."""

from __future__ import annotations

from .._lazy import lazy_attributes
from .._not_implemented import not_implemented


def is_available() -> bool:
    """Returns False."""
    return False


def device_count() -> int:
    """Returns 0."""
    return 0


def is_initialized() -> bool:
    """Returns False."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Returns False."""
    return False


def is_tf32_supported() -> bool:
    """Returns False."""
    return False


def is_current_stream_capturing() -> bool:
    """Returns False."""
    return False


def get_arch_list() -> list[str]:
    """Returns an empty list."""
    return []


def empty_cache() -> None:
    """Has no effect."""


not_implemented(
    globals(), "the engine has no such device; it computes on CPUs and CUDA GPUs",
    "can_device_access_peer change_current_allocator clock_rate current_device current_stream device_memory_used "
    "get_device_capability get_device_name get_device_properties get_gencode_flags get_per_process_memory_fraction get_rng_state "
    "get_rng_state_all get_stream_from_external graph graph_pool_handle init initial_seed list_gpu_processes "
    "make_graphed_callables manual_seed manual_seed_all max_memory_allocated max_memory_reserved mem_get_info memory_allocated "
    "memory_reserved memory_snapshot memory_stats memory_stats_as_nested_dict memory_usage power_draw "
    "reset_accumulated_memory_stats reset_peak_memory_stats seed seed_all set_device set_per_process_memory_fraction "
    "set_rng_state set_rng_state_all set_stream stream synchronize temperature use_mem_pool utilization",
    "Event MemPool Stream StreamContext XPUGraph XPUPluggableAllocator device device_of",
)  # fmt: skip
default_generators: tuple = ()
__getattr__, __dir__ = lazy_attributes(globals(), ("streams",))
