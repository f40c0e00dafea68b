"""torch._C._linalg: the functions of torch.linalg, with the prefix linalg_."""

from __future__ import annotations

from typing import Any

from .. import linalg


def __getattr__(name: str) -> Any:
    if name.startswith("linalg_"):
        return getattr(linalg, name.removeprefix("linalg_"))
    raise AttributeError(f"module 'teletensor._C._linalg' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [f"linalg_{name}" for name in linalg.__all__]
