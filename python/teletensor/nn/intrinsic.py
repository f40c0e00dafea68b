"""torch.nn.intrinsic: PyTorch's older name of torch.ao.nn.intrinsic, fused modules."""

from __future__ import annotations

from typing import Any

from ..ao.nn import intrinsic as _names


def __getattr__(name: str) -> Any:
    """The names of torch.ao.nn.intrinsic."""
    if name.startswith("__"):
        raise AttributeError(f"module 'teletensor.nn.intrinsic' has no attribute {name!r}")
    return getattr(_names, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_names)})
