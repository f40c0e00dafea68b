"""torch.utils."""

from __future__ import annotations

from typing import Any

from .._lazy import lazy_attributes

__all__ = [  # noqa: F822 - imported at their first use
    "ThroughputBenchmark", "backend_registration", "checkpoint", "collect_env", "data", "deterministic", "dlpack",
    "generate_methods_for_privateuse1_backend", "hooks", "rename_privateuse1_backend", "set_module", "swap_tensors",
    "throughput_benchmark", "weak",
]  # fmt: skip


def set_module(obj: Any, mod: str) -> None:
    """Sets the module of a function or class."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod

__getattr__, __dir__ = lazy_attributes(
    globals(),
    None,
    {
        "_swap": "swap_tensors",
        "backend_registration": "generate_methods_for_privateuse1_backend rename_privateuse1_backend",
        "throughput_benchmark": "ThroughputBenchmark",
    },
)
