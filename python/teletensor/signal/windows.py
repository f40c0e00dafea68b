"""torch.signal.windows: window functions of M points, symmetric or (sym=False) periodic."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Callable

from .. import _C
from .._C import Tensor
from .._layouts import layout as layout_type
from .._layouts import strided
from .._options import check_layout

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann",
    "kaiser", "nuttall",
]  # fmt: skip

_torch, _special = _C.torch, _C.special


def _points(
    name: str, M: int, first: float, step: float, shape: Callable, dtype, layout, device, requires_grad: bool  # noqa: N803
) -> Tensor:
    """shape(first), shape(first + step), ...; computed in float64."""
    if isinstance(layout, layout_type) and layout != strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    check_layout(name, layout)
    dtype = dtype or _C.default_dtype()
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if dtype not in (_C.float32, _C.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    positions = _torch.arange(M, dtype=_C.float64, device=device) * step + first
    return shape(positions).to(dtype).requires_grad_(requires_grad)


def _period(M: int, sym: bool) -> int:  # noqa: N803
    return M - 1 if sym else M


def bartlett(M: int, *, sym: bool = True, dtype=None, layout=None, device=None, requires_grad: bool = False) -> Tensor:  # noqa: N803
    """A triangular window."""
    first, step = (0.0, 0.0) if M <= 1 else (-1.0, 2 / _period(M, sym))
    return _points("bartlett", M, first, step, lambda k: 1 - k.abs(), dtype, layout, device, requires_grad)


def cosine(M: int, *, sym: bool = True, dtype=None, layout=None, device=None, requires_grad: bool = False) -> Tensor:  # noqa: N803
    """A window of half a sine period."""
    step = math.pi / (M if sym or M <= 1 else M + 1) if M else 0.0
    return _points("cosine", M, step / 2, step, _torch.sin, dtype, layout, device, requires_grad)


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype=None, layout=None, device=None,  # noqa: N803
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """exp(-|i - center| / tau)."""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    middle = (M - 1 if sym or M <= 1 else M) / 2 if center is None else center
    return _points("exponential", M, -middle / tau, 1 / tau, lambda k: (-k.abs()).exp(), dtype, layout, device, requires_grad)


def gaussian(
    M: int, *, std: float = 1.0, sym: bool = True, dtype=None, layout=None, device=None, requires_grad: bool = False  # noqa: N803
) -> Tensor:
    """exp(-(distance from the middle)^2 / (2 std^2))."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    step = 1 / (std * math.sqrt(2))
    middle = (M - 1 if sym or M <= 1 else M) / 2
    return _points("gaussian", M, -middle * step, step, lambda k: (-(k * k)).exp(), dtype, layout, device, requires_grad)


def kaiser(
    M: int, *, beta: float = 12.0, sym: bool = True, dtype=None, layout=None, device=None, requires_grad: bool = False  # noqa: N803
) -> Tensor:
    """I0(beta sqrt(1 - x^2)) / I0(beta), x from -1 to 1."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    first, step = (0.0, 0.0) if M <= 1 else (-1.0, 2 / _period(M, sym))

    def shape(x: Tensor) -> Tensor:
        # Scaled Bessel functions, so that a large beta does not overflow.
        inside = (1 - x * x).clamp_min(0).sqrt() * beta
        top = _torch.full([], beta, dtype=x.dtype, device=x.device)
        return _special.i0e(inside) / _special.i0e(top) * (inside - beta).exp()

    return _points("kaiser", M, first, step, shape, dtype, layout, device, requires_grad)


def general_cosine(
    M: int, *, a: Iterable[float], sym: bool = True, dtype=None, layout=None, device=None, requires_grad: bool = False  # noqa: N803
) -> Tensor:
    """a[0] - a[1] cos(x) + a[2] cos(2 x) - ..., x over one period."""
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    weights = list(a)
    if not weights:
        raise ValueError("Coefficients cannot be empty")
    if M == 1:
        return _points("general_cosine", M, 0.0, 0.0, lambda k: k + 1, dtype, layout, device, requires_grad)
    step = 2 * math.pi / _period(M, sym) if M else 0.0

    def shape(x: Tensor) -> Tensor:
        terms = [(x * i).cos() * ((-1) ** i * w) for i, w in enumerate(weights)]
        return sum(terms[1:], terms[0])

    return _points("general_cosine", M, 0.0, step, shape, dtype, layout, device, requires_grad)


def general_hamming(
    M: int, *, alpha: float = 0.54, sym: bool = True, dtype=None, layout=None, device=None, requires_grad: bool = False  # noqa: N803
) -> Tensor:
    """alpha - (1 - alpha) cos(x)."""
    weights = [alpha, 1.0 - alpha]
    return general_cosine(M, a=weights, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def _general_cosine_window(name: str, weights: tuple[float, ...]) -> Callable:
    def window(
        M: int, *, sym: bool = True, dtype=None, layout=None, device=None, requires_grad: bool = False  # noqa: N803
    ) -> Tensor:
        return general_cosine(M, a=weights, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)

    window.__name__, window.__doc__ = name, f"general_cosine with coefficients {', '.join(map(str, weights))}."
    return window


hamming, hann = _general_cosine_window("hamming", (0.54, 0.46)), _general_cosine_window("hann", (0.5, 0.5))
blackman = _general_cosine_window("blackman", (0.42, 0.5, 0.08))
nuttall = _general_cosine_window("nuttall", (0.3635819, 0.4891775, 0.1365995, 0.0106411))
