"""torch.nn.quantized: PyTorch's older name of torch.ao.nn.quantized, modules with quantized weights."""

from __future__ import annotations

from typing import Any

from ..ao.nn import quantized as _names


def __getattr__(name: str) -> Any:
    """The names of torch.ao.nn.quantized."""
    if name.startswith("__"):
        raise AttributeError(f"module 'teletensor.nn.quantized' has no attribute {name!r}")
    return getattr(_names, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_names)})
