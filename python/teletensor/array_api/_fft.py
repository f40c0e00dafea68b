"""Fourier transforms on Tensors, with the standard's signatures."""

from __future__ import annotations

from typing import Any, Callable

from .. import fft as _ours
from .._C import Tensor
from ._tables import named

_LINES = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
_GRIDS = ("fftn", "ifftn", "rfftn", "irfftn")
_FREQUENCIES = ("fftfreq", "rfftfreq")
_SHIFTS = ("fftshift", "ifftshift")

__all__ = [*_LINES, *_GRIDS, *_FREQUENCIES, *_SHIFTS]


def _line(name: str, ours: Callable) -> Callable:
    def transform(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
        return ours(x, n, axis, norm)

    return named(name, transform)


def _grid(name: str, ours: Callable) -> Callable:
    def transform(x: Tensor, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
        return ours(x, s, axes, norm)

    return named(name, transform)


def _frequencies(name: str, ours: Callable) -> Callable:
    def frequencies(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
        return ours(n, d, dtype=dtype, device=device)

    return named(name, frequencies)


def _shift(name: str, ours: Callable) -> Callable:
    def shift(x: Tensor, /, *, axes: Any = None) -> Tensor:
        return ours(x, axes)

    return named(name, shift)


for _names, _made in ((_LINES, _line), (_GRIDS, _grid), (_FREQUENCIES, _frequencies), (_SHIFTS, _shift)):
    globals().update({name: _made(name, getattr(_ours, name)) for name in _names})
