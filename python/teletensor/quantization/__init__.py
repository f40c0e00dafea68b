"""torch.quantization: PyTorch's older name of torch.ao.quantization."""

from __future__ import annotations

from typing import Any

from .._not_implemented import not_implemented
from ..ao import quantization as _names

not_implemented(
    globals(), "deprecated in PyTorch; use default_weight_observer",
    "WeightObserver",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    """The names of torch.ao.quantization."""
    if name.startswith("__"):
        raise AttributeError(f"module 'teletensor.quantization' has no attribute {name!r}")
    return getattr(_names, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_names)})
