"""torch.mps: Apple's GPUs. The engine computes on CPUs and CUDA GPUs: the module acts as PyTorch's does without the device."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import Any

from .._absent_device import answering, classes, raising
from .._lazy import lazy_attributes

__all__ = [
    "Event", "Stream", "compile_shader", "current_allocated_memory", "current_stream", "default_stream", "device_count",
    "driver_allocated_memory", "empty_cache", "get_rng_state", "is_available", "load_metallib", "manual_seed",
    "profiler", "recommended_max_memory", "seed", "set_per_process_memory_fraction", "set_rng_state", "set_stream",
    "stream", "synchronize",
]  # fmt: skip

_DUMMY = "Tried to instantiate dummy base class Stream"


def _without(function: str) -> str:
    return f"Cannot execute {function}() without MPS backend."


answering(globals(), "mps", bool, is_available=lambda: 0)
answering(globals(), "mps", int, device_count=lambda: 0)
answering(globals(), "mps", lambda: None, manual_seed=lambda seed: 0)
for _name, _internal, _signature in (
    ("current_allocated_memory", "getCurrentAllocatedMemory", lambda: 0),
    ("driver_allocated_memory", "getDriverAllocatedMemory", lambda: 0),
    ("empty_cache", "emptyCache", lambda: 0), ("get_rng_state", "getDefaultGenerator", lambda device="mps": 0),
    ("recommended_max_memory", "getRecommendedMaxMemory", lambda: 0), ("seed", "getDefaultGenerator", lambda: 0),
    ("set_rng_state", "getDefaultGenerator", lambda new_state, device="mps": 0), ("synchronize", "deviceSynchronize", lambda: 0),
    ("current_stream", "getCurrentStream", lambda: 0),
):  # fmt: skip
    raising(globals(), "mps", RuntimeError, _without(_internal), **{_name: _signature})
raising(globals(), "mps", RuntimeError, "MPS is not available", compile_shader=lambda source: 0)
raising(globals(), "mps", RuntimeError, _DUMMY, default_stream=lambda: 0)
classes(globals(), "mps", RuntimeError, _DUMMY, Stream=lambda *args, **kwargs: 0)
classes(globals(), "mps", RuntimeError, _without("acquireEvent"), Event=lambda enable_timing=False: 0)


def set_per_process_memory_fraction(fraction: float) -> None:
    """Checks its argument; raises RuntimeError, as there is no device."""
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if fraction < 0 or fraction > 2:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~2")
    raise RuntimeError(_without("setMemoryFraction"))


def load_metallib(source: bytes | bytearray | str | os.PathLike) -> None:
    """Raises RuntimeError, as there is no device; TypeError for what is neither bytes nor a path."""
    if isinstance(source, (bytes, bytearray, str, os.PathLike)):
        raise RuntimeError("MPS is not available")
    raise TypeError(f"expected bytes or path, got {type(source).__name__}")


def set_stream(stream: Any) -> None:
    """Selects a stream; None has no effect. Others raise RuntimeError, as there is no device."""
    if stream is not None:
        raise RuntimeError(_without("setStream"))


@contextmanager
def stream(stream: Any):
    """Selects a stream: entering it raises RuntimeError, as there is no device."""
    before = current_stream()  # noqa: F821 - defined by raising()
    set_stream(stream)
    yield
    set_stream(before)


for _function in (set_per_process_memory_fraction, load_metallib, set_stream, stream):
    _function.__absent_device__ = "mps"
__getattr__, __dir__ = lazy_attributes(globals(), ("profiler",))
