"""torch.mps.profiler: Apple's profiler."""

from __future__ import annotations

from .._not_implemented import not_implemented

not_implemented(
    globals(), "the engine has no such device; it computes on CPUs and CUDA GPUs",
    "is_capturing_metal is_metal_capture_enabled metal_capture profile start stop",
)  # fmt: skip
