"""torch.autograd.profiler: names of torch.profiler, under their older module."""

from __future__ import annotations

import importlib
from typing import Any

from .._planned import not_implemented

__all__ = ["EnforceUnique", "emit_itt", "emit_nvtx", "load_nvprof", "parse_nvprof_trace", "profile", "record_function"]  # noqa: F822


class EnforceUnique:
    """Raises RuntimeError if a key is seen twice."""

    def __init__(self) -> None:
        self.seen: set = set()

    def see(self, *key: Any) -> None:
        """Notes a key."""
        if key in self.seen:
            raise RuntimeError("duplicate key: " + str(key))
        self.seen.add(key)


not_implemented(
    globals(), "NVIDIA's and Intel's profilers see the engine, not this process",
    "load_nvprof parse_nvprof_trace", "emit_itt emit_nvtx",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    """profile, record_function and others of torch.profiler."""
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(importlib.import_module("teletensor.profiler"), name)
