"""torch.cuda.profiler: starts and stops NVIDIA's profilers."""

from __future__ import annotations

from .._not_implemented import not_implemented

__all__ = ["profile", "start", "stop"]  # noqa: F822 - defined below

not_implemented(globals(), "NVIDIA's profilers see the engine, not this process; run teletensord under nsys", "init profile start stop")
