"""torch.mtia: accelerators of Meta. The engine computes on CPUs and CUDA GPUs, so none is ever available."""

from __future__ import annotations

from ._not_implemented import not_implemented


def is_available() -> bool:
    """Returns False."""
    return False


def device_count() -> int:
    """Returns 0."""
    return 0


not_implemented(
    globals(), "the engine has no such device; it computes on CPUs and CUDA GPUs",
    "current_device current_stream default_stream empty_cache get_device_capability init manual_seed set_device set_stream stream "
    "synchronize",
    "Event Stream",
)  # fmt: skip
