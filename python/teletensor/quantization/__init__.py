"""torch.quantization: PyTorch's older name of torch.ao.quantization."""

from __future__ import annotations

from typing import Any

from ..ao import quantization as _names


def __getattr__(name: str) -> Any:
    """The names of torch.ao.quantization."""
    if name.startswith("__"):
        raise AttributeError(f"module 'teletensor.quantization' has no attribute {name!r}")
    return getattr(_names, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_names)})
