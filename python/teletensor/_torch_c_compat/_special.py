"""torch._C._special: the functions of torch.special, with the prefix special_."""

from __future__ import annotations

from typing import Any

from .. import special


def __getattr__(name: str) -> Any:
    if name.startswith("special_"):
        return getattr(special, name.removeprefix("special_"))
    raise AttributeError(f"module 'teletensor._C._special' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [f"special_{name}" for name in special.__all__]
