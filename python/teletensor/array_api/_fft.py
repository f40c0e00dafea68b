"""Fourier transforms on Tensors, with the standard's signatures."""

from __future__ import annotations

from typing import Any, Callable

from .. import fft as _ours
from .._C import Tensor
from ._tables import with_standard_name

_TRANSFORMS_1D = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
_TRANSFORMS_ND = ("fftn", "ifftn", "rfftn", "irfftn")
_FREQUENCIES = ("fftfreq", "rfftfreq")
_SHIFTS = ("fftshift", "ifftshift")

__all__ = [*_TRANSFORMS_1D, *_TRANSFORMS_ND, *_FREQUENCIES, *_SHIFTS]


def _transform_1d(name: str, ours: Callable) -> Callable:
    def transform(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
        return ours(x, n, axis, norm)

    return with_standard_name(name, transform)


def _transform_nd(name: str, ours: Callable) -> Callable:
    def transform(x: Tensor, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
        return ours(x, s, axes, norm)

    return with_standard_name(name, transform)


def _frequencies(name: str, ours: Callable) -> Callable:
    def frequencies(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
        return ours(n, d, dtype=dtype, device=device)

    return with_standard_name(name, frequencies)


def _shift(name: str, ours: Callable) -> Callable:
    def shift(x: Tensor, /, *, axes: Any = None) -> Tensor:
        return ours(x, axes)

    return with_standard_name(name, shift)


for _names, _factory in (
    (_TRANSFORMS_1D, _transform_1d), (_TRANSFORMS_ND, _transform_nd), (_FREQUENCIES, _frequencies), (_SHIFTS, _shift),
):  # fmt: skip
    globals().update({name: _factory(name, getattr(_ours, name)) for name in _names})
