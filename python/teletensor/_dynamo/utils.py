"""torch._dynamo.utils: counters of captures, and whether graphs can be compiled for a device."""

from __future__ import annotations

from typing import Any

from ._logs import counters
from .eval_frame import is_dynamo_supported

__all__ = ["counters", "is_compile_supported"]


def is_compile_supported(device_type: Any) -> bool:
    """Whether graphs on the device are compiled: on CPUs and CUDA GPUs."""
    return is_dynamo_supported() and str(device_type).partition(":")[0] in ("cpu", "cuda")
