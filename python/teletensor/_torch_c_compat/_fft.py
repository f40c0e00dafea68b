"""torch._C._fft: the functions of torch.fft, with the prefix fft_."""

from __future__ import annotations

from typing import Any

from .. import fft


def __getattr__(name: str) -> Any:
    if name.startswith("fft_"):
        return getattr(fft, name.removeprefix("fft_"))
    raise AttributeError(f"module 'teletensor._C._fft' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [f"fft_{name}" for name in fft.__all__]
