"""torch.nn.quantizable: PyTorch's older name of torch.ao.nn.quantizable, modules that can be observed and quantized."""

from __future__ import annotations

from typing import Any

from ..ao.nn import quantizable as _names


def __getattr__(name: str) -> Any:
    """The names of torch.ao.nn.quantizable."""
    if name.startswith("__"):
        raise AttributeError(f"module 'teletensor.nn.quantizable' has no attribute {name!r}")
    return getattr(_names, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_names)})
