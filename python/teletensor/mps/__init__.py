"""torch.mps: Apple's GPUs. The engine computes on CPUs and CUDA GPUs, so none is ever available."""

from __future__ import annotations

from .._lazy import lazy_attributes
from .._not_implemented import not_implemented


def is_available() -> bool:
    """Returns False."""
    return False


def device_count() -> int:
    """Returns 0."""
    return 0


not_implemented(
    globals(), "the engine has no such device; it computes on CPUs and CUDA GPUs",
    "compile_shader current_allocated_memory current_stream default_stream driver_allocated_memory empty_cache get_rng_state "
    "load_metallib manual_seed recommended_max_memory seed set_per_process_memory_fraction set_rng_state set_stream stream "
    "synchronize",
    "Event Stream",
)  # fmt: skip
__getattr__, __dir__ = lazy_attributes(globals(), ("profiler",))
