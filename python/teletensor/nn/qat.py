"""torch.nn.qat: PyTorch's older name of torch.ao.nn.qat, modules whose weights are rounded while they are trained."""

from __future__ import annotations

from typing import Any

from ..ao.nn import qat as _names


def __getattr__(name: str) -> Any:
    """The names of torch.ao.nn.qat."""
    if name.startswith("__"):
        raise AttributeError(f"module 'teletensor.nn.qat' has no attribute {name!r}")
    return getattr(_names, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_names)})
