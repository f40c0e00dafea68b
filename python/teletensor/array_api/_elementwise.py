"""Elementwise functions: tables of names, and functions that differ from PyTorch's in special cases."""

from __future__ import annotations

from typing import Any, Callable

from .. import _C, _functions
from .._C import Tensor
from ._dtypes import kind_of, promote_operands, promote_to_tensors
from ._tables import with_standard_name

_torch = _C.torch

# Maps the standard's names to teletensor's.
_UNARY = {
    **{name: name for name in (
        "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "expm1", "isfinite", "isinf",
        "isnan", "log", "log1p", "log2", "log10", "logical_not", "negative", "reciprocal", "signbit", "sin", "sinh",
        "square", "sqrt", "tan", "tanh",
    )},
    "bitwise_invert": "bitwise_not",
}  # fmt: skip
_BINARY = {
    **{name: name for name in (
        "add", "atan2", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
        "copysign", "divide", "greater", "greater_equal", "hypot", "less", "less_equal", "logaddexp", "logical_and",
        "logical_or", "logical_xor", "maximum", "minimum", "multiply", "nextafter", "not_equal", "pow", "subtract",
    )},
    "equal": "eq",
}  # fmt: skip
_ROUNDING = ("ceil", "floor", "round", "trunc")

__all__ = [
    *_UNARY, *_BINARY, *_ROUNDING, "clip", "conj", "floor_divide", "imag", "positive", "real", "remainder", "sign",
]  # fmt: skip


def _unary(name: str, ours: Callable) -> Callable:
    return with_standard_name(name, lambda x, /: ours(x))


def _binary(name: str, ours: Callable) -> Callable:
    return with_standard_name(name, lambda x1, x2, /: ours(*promote_operands(x1, x2)))


def _rounding_function(name: str, ours: Callable) -> Callable:
    return with_standard_name(name, lambda x, /: _on_real_and_imag(ours, x) if x.dtype.is_complex else ours(x))


def _on_real_and_imag(function: Callable, x: Tensor) -> Tensor:
    return _torch.complex(function(x.real), function(x.imag))


globals().update({name: _unary(name, getattr(_torch, ours)) for name, ours in _UNARY.items()})
globals().update({name: _binary(name, getattr(_torch, ours)) for name, ours in _BINARY.items()})
globals().update({name: _rounding_function(name, getattr(_torch, name)) for name in _ROUNDING})


def positive(x: Tensor, /) -> Tensor:
    """Returns a copy."""
    return x.clone()


def conj(x: Tensor, /) -> Tensor:
    """The complex conjugate; a real array is returned unchanged."""
    return x.conj_physical() if x.dtype.is_complex else x


def real(x: Tensor, /) -> Tensor:
    """The real part."""
    return x.real


def imag(x: Tensor, /) -> Tensor:
    """The imaginary part; zeros for real arrays."""
    return x.imag if x.dtype.is_complex else _torch.zeros_like(x)


def sign(x: Tensor, /) -> Tensor:
    """The sign: -1, 0 or 1 for real numbers, x / |x| for complex numbers, NaN for NaN."""
    if x.dtype.is_complex:
        return x.sgn()
    return _torch.where(x.isnan(), x, x.sign()) if x.is_floating_point() else x.sign()


def remainder(x1: Any, x2: Any, /) -> Tensor:
    """The remainder of x1 / x2. It has the sign of x2, even if it is zero."""
    x1, x2 = promote_operands(x1, x2)
    rest = _torch.remainder(x1, x2)
    return _torch.where(rest == 0, _torch.copysign(rest, x2), rest) if rest.is_floating_point() else rest


def floor_divide(x1: Any, x2: Any, /) -> Tensor:
    """The quotient, rounded down. Unlike in Python, inf // 2 is inf (not NaN) and -1 // inf is -0 (not -1)."""
    x1, x2 = promote_to_tensors(x1, x2)
    quotient = _torch.floor_divide(x1, x2)
    if not quotient.is_floating_point():
        return quotient
    return _torch.where(x1.isfinite() & x2.isfinite(), quotient, _torch.divide(x1, x2).floor())


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """x clamped between two bounds, each a number, an array or None; the result has x's dtype."""
    lower = None if min is None else _clamp_bound(min, x)
    upper = None if max is None else _clamp_bound(max, x)
    result = x.clone() if lower is None else _torch.maximum(x, lower)
    return result if upper is None else _torch.minimum(result, upper)


def _clamp_bound(bound: Any, x: Tensor) -> Tensor:
    if isinstance(bound, Tensor):
        return bound.to(x.dtype)
    if isinstance(bound, int) and kind_of(x.dtype) in ("signed integer", "unsigned integer"):
        limits = _functions.iinfo(x.dtype)
        bound = sorted((limits.min, bound, limits.max))[1]  # clamp the bound to the dtype's limits
    return _C.tensor(bound, dtype=x.dtype, device=x.device)
