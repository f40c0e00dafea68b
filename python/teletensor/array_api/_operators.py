"""The operators of Array: the standard's functions, also in place and with numbers as either operand."""

from __future__ import annotations

from typing import Any, Callable

from .._C import Tensor
from . import _elementwise, _linalg
from ._array import Array, to_tensor
from ._dtypes import result_type

_UNARY = {"abs": "abs", "invert": "bitwise_invert", "neg": "negative", "pos": "positive"}
_COMPARING = {
    "eq": "equal", "ge": "greater_equal", "gt": "greater", "le": "less_equal", "lt": "less", "ne": "not_equal",
}  # fmt: skip
_ARITHMETIC = {
    "add": "add", "and": "bitwise_and", "floordiv": "floor_divide", "lshift": "bitwise_left_shift", "mod": "remainder",
    "mul": "multiply", "or": "bitwise_or", "pow": "pow", "rshift": "bitwise_right_shift", "sub": "subtract",
    "truediv": "divide", "xor": "bitwise_xor", "matmul": "matmul",
}  # fmt: skip
_OPERANDS = (Tensor, bool, int, float, complex)


def _unary(function: Callable) -> Callable:
    return lambda self, /: Array(function(to_tensor(self)))


def _binary(function: Callable) -> Callable:
    def operator(self: Array, other: Any, /) -> Array:
        return Array(function(to_tensor(self), to_tensor(other))) if isinstance(other, _OPERANDS) else NotImplemented

    return operator


def _reflected(function: Callable) -> Callable:
    def operator(self: Array, other: Any, /) -> Array:
        return Array(function(to_tensor(other), to_tensor(self))) if isinstance(other, _OPERANDS) else NotImplemented

    return operator


def _in_place(function: Callable) -> Callable:
    def operator(self: Array, other: Any, /) -> Array:
        if not isinstance(other, _OPERANDS):
            return NotImplemented
        target = to_tensor(self)
        if result_type(target, other) is not target.dtype:
            raise TypeError(
                f"the result has dtype {result_type(target, other)}, which an array of {target.dtype} cannot store"
            )
        result = function(target, to_tensor(other))
        if result.shape != target.shape:
            raise ValueError(f"expected a result of shape {tuple(target.shape)}, got {tuple(result.shape)}")
        target.copy_(result)
        return self

    return operator


def _method(name: str, operator: Callable) -> None:
    operator.__name__, operator.__qualname__ = name, f"Array.{name}"
    setattr(Array, name, operator)


def _function(name: str) -> Callable:
    return _linalg.matmul if name == "matmul" else getattr(_elementwise, name)


for _name, _standard in _UNARY.items():
    _method(f"__{_name}__", _unary(_function(_standard)))
for _name, _standard in _COMPARING.items():
    _method(f"__{_name}__", _binary(_function(_standard)))
for _name, _standard in _ARITHMETIC.items():
    _method(f"__{_name}__", _binary(_function(_standard)))
    _method(f"__r{_name}__", _reflected(_function(_standard)))
    _method(f"__i{_name}__", _in_place(_function(_standard)))
Array.__hash__ = Tensor.__hash__
