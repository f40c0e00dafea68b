"""Elementwise arithmetic, comparisons, logic and bits."""

from __future__ import annotations

import functools
from collections.abc import Callable

import teletensor as torch

from .._call import Call

Tensor = torch.Tensor
_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)


def aligned(call: Call, a: Tensor, b: Tensor) -> Tensor:
    """The second operand for operator sets before 7, which broadcast it only if told to, at an axis."""
    if call.version < 7 and call.get("broadcast", 0) and "axis" in call.attributes:
        return b.reshape(list(b.shape) + [1] * (a.dim() - b.dim() - call.get("axis")))
    return b


def _unary(function: Callable) -> Callable:
    return lambda call, x: function(x)


def _binary(function: Callable) -> Callable:
    return lambda call, a, b: function(a, aligned(call, a, b))


def _many(function: Callable) -> Callable:
    def reduce(_call: Call, *inputs: Tensor) -> Tensor:
        return functools.reduce(function, inputs)

    return reduce


def _div(call: Call, a: Tensor, b: Tensor) -> Tensor:
    b = aligned(call, a, b)
    if a.dtype.is_floating_point or a.dtype.is_complex:
        return a / b
    return torch.div(a, b, rounding_mode="trunc")


def _mod(call: Call, a: Tensor, b: Tensor) -> Tensor:
    return torch.fmod(a, b) if call.get("fmod", 0) else torch.remainder(a, b)


def _pow(call: Call, a: Tensor, b: Tensor) -> Tensor:
    b = aligned(call, a, b)
    if a.dtype == b.dtype:
        return torch.pow(a, b)
    if a.dtype.is_floating_point:
        return torch.pow(a, b.to(a.dtype))
    return torch.pow(a.to(torch.float64), b.to(torch.float64)).to(a.dtype)


def _mean(_call: Call, *inputs: Tensor) -> Tensor:
    return functools.reduce(torch.add, inputs) / len(inputs)


def _shift(call: Call, a: Tensor, b: Tensor) -> Tensor:
    left = call.need("direction") == "LEFT"
    bits = 8 * a.element_size()
    if a.dtype in _UNSIGNED or a.dtype == torch.uint8:
        if a.dtype == torch.uint64:
            wide, amount = a.view(torch.int64), b.view(torch.int64)
            shifted = wide << amount if left else ((wide >> 1) & (2**63 - 1)) >> torch.clamp(amount - 1, min=0)
            shifted = torch.where(amount == 0, wide, shifted)
            return torch.where((amount >= bits) | (amount < 0), torch.zeros_like(wide), shifted).view(torch.uint64)
        wide, amount = a.to(torch.int64), b.to(torch.int64)
    else:
        wide, amount = a.to(torch.int64), b.to(torch.int64)
    if left:
        shifted = torch.where(amount >= bits, torch.zeros_like(wide), wide << torch.clamp(amount, max=63))
        return (shifted & (2**bits - 1)).to(a.dtype) if bits < 64 else shifted.to(a.dtype)
    return (wide >> torch.clamp(amount, max=63)).to(a.dtype)


def _clip_attributes(call: Call, x: Tensor) -> Tensor:
    low, high = call.get("min"), call.get("max")
    return x if low is None and high is None else torch.clamp(x, low, high)


def _clip(_call: Call, x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    if low is not None:
        x = torch.maximum(x, low)
    return x if high is None else torch.minimum(x, high)


def _sign(_call: Call, x: Tensor) -> Tensor:
    if x.dtype in _UNSIGNED:
        return (x != 0).to(x.dtype)
    return torch.where(x != x, x, torch.sign(x)) if x.dtype.is_floating_point else torch.sign(x)


def _isinf(call: Call, x: Tensor) -> Tensor:
    found = torch.zeros_like(x, dtype=torch.bool)
    x = x.to(torch.float32) if x.element_size() == 1 else x
    if call.get("detect_positive", 1):
        found = found | (x == float("inf"))
    if call.get("detect_negative", 1):
        found = found | (x == float("-inf"))
    return found


def _isnan(_call: Call, x: Tensor) -> Tensor:
    return torch.isnan(x.to(torch.float32) if x.element_size() == 1 else x)


def _compare(function: Callable) -> Callable:
    def compare(call: Call, a: Tensor, b: Tensor) -> Tensor:
        return function(a, aligned(call, a, b))

    return compare


def _where(_call: Call, condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return torch.where(condition, a, b)


def _rows(since: int, function: Callable) -> tuple:
    return ((since, function),)


TABLE: dict[str, tuple] = {
    **{
        name: _rows(1, _unary(function))
        for name, function in {
            "Abs": torch.abs, "Neg": torch.neg, "Ceil": torch.ceil, "Floor": torch.floor, "Sqrt": torch.sqrt,
            "Exp": torch.exp, "Log": torch.log, "Reciprocal": torch.reciprocal, "Not": torch.logical_not,
            "Sin": torch.sin, "Cos": torch.cos, "Tan": torch.tan, "Asin": torch.asin, "Acos": torch.acos,
            "Atan": torch.atan, "Sinh": torch.sinh, "Cosh": torch.cosh, "Asinh": torch.asinh, "Acosh": torch.acosh,
            "Atanh": torch.atanh, "Erf": torch.erf, "Round": torch.round, "BitwiseNot": torch.bitwise_not,
        }.items()
    },
    **{
        name: _rows(1, _binary(function))
        for name, function in {
            "Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "And": torch.logical_and, "Or": torch.logical_or,
            "Xor": torch.logical_xor, "BitwiseAnd": torch.bitwise_and, "BitwiseOr": torch.bitwise_or,
            "BitwiseXor": torch.bitwise_xor,
        }.items()
    },
    **{
        name: _rows(1, _compare(function))
        for name, function in {
            "Equal": torch.eq, "Greater": torch.gt, "GreaterOrEqual": torch.ge, "Less": torch.lt, "LessOrEqual": torch.le,
        }.items()
    },
    "Div": _rows(1, _div), "Mod": _rows(1, _mod), "Pow": _rows(1, _pow), "Sum": _rows(1, _many(torch.add)),
    "Max": _rows(1, _many(torch.maximum)), "Min": _rows(1, _many(torch.minimum)), "Mean": _rows(1, _mean),
    "BitShift": _rows(1, _shift), "Clip": ((1, _clip_attributes), (11, _clip)), "Sign": _rows(1, _sign),
    "IsInf": _rows(1, _isinf), "IsNaN": _rows(1, _isnan), "Where": _rows(1, _where),
}  # fmt: skip
