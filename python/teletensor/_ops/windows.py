"""Window functions of signal processing, as torch.<name>_window."""

from __future__ import annotations

import math

from .. import _C
from .._C import Tensor
from .._options import check_flags, check_kind, check_layout

__all__ = ["bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window"]


def _window(name: str, length: int, periodic: bool, dtype, layout, device, pin_memory, requires_grad: bool, shape) -> Tensor:
    """Returns shape(i, n) for 0 <= i < length, where n is `length` for a periodic window and length - 1 otherwise."""
    check_layout(name, layout)
    check_flags(name, pin_memory=pin_memory)
    check_kind(name, "window_length", length, int)
    if length < 0:
        raise RuntimeError(f"window_length must be non-negative, got {length}")
    dtype = dtype or _C.default_dtype()
    if not dtype.is_floating_point:
        raise RuntimeError(f"window functions expect floating point dtypes, got: {dtype}")
    if length <= 1:
        return _C.torch.ones(length, dtype=dtype, device=device, requires_grad=requires_grad)
    positions = _C.torch.arange(length, dtype=_C.float64, device=device)
    return shape(positions, length if periodic else length - 1).to(dtype).requires_grad_(requires_grad)


def _cosines(*weights: float):
    """weights[0] - weights[1] cos(2 pi i / n) + weights[2] cos(4 pi i / n)."""

    def shape(positions: Tensor, n: int) -> Tensor:
        terms = [(positions * (2 * math.pi * k / n)).cos() * (w * (-1) ** k) for k, w in enumerate(weights)]
        return sum(terms[1:], terms[0])

    return shape


def hann_window(
    window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
) -> Tensor:
    """(1 - cos(2 pi i / n)) / 2."""
    return _window(
        "hann_window", window_length, periodic, dtype, layout, device, pin_memory, requires_grad, _cosines(0.5, 0.5)
    )


def hamming_window(
    window_length, periodic=True, alpha=0.54, beta=0.46, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
) -> Tensor:
    """alpha - beta cos(2 pi i / n)."""
    return _window(
        "hamming_window", window_length, periodic, dtype, layout, device, pin_memory, requires_grad, _cosines(alpha, beta)
    )


def blackman_window(
    window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
) -> Tensor:
    """0.42 - 0.5 cos(2 pi i / n) + 0.08 cos(4 pi i / n)."""
    return _window(
        "blackman_window", window_length, periodic, dtype, layout, device, pin_memory, requires_grad, _cosines(0.42, 0.5, 0.08)
    )


def bartlett_window(
    window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
) -> Tensor:
    """A triangular window."""
    return _window(
        "bartlett_window", window_length, periodic, dtype, layout, device, pin_memory, requires_grad,
        lambda i, n: 1 - (i * (2 / n) - 1).abs(),
    )


def _bessel_i0(x: Tensor) -> Tensor:
    """The modified Bessel function of order 0 by its power series: accurate in float64 for arguments below 40."""
    quarter, term, total = x * x / 4, _C.torch.ones_like(x), _C.torch.ones_like(x)
    for k in range(1, 80):
        term = term * quarter / (k * k)
        total = total + term
    return total


def kaiser_window(
    window_length, periodic=True, beta=12.0, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
) -> Tensor:
    """I0(beta sqrt(1 - (2 i / n - 1)^2)) / I0(beta)."""

    def shape(positions: Tensor, n: int) -> Tensor:
        inside = (1 - (positions * (2 / n) - 1) ** 2).clamp_min(0).sqrt() * beta
        return _bessel_i0(inside) / _bessel_i0(_C.tensor([float(beta)], dtype=_C.float64, device=positions.device))

    return _window(
        "kaiser_window", window_length, periodic, dtype, layout, device, pin_memory, requires_grad, shape
    )
