"""SymFloat: a float that a traced function has computed from sizes.

An operator that adds, subtracts, multiplies or divides a tensor by it receives a float64 tensor without dimensions, which every run of
the Program computes from its inputs' sizes. Every other use needs the number of the example, which runs are then required to have.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable
from typing import Any

from . import _C
from ._C import Tensor
from ._lazy import set_module
from ._symbolic_bool import RELATIONS, SymBool, set_float_maker

_BINARY: dict[str, Callable] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "**": operator.pow, "max": max, "min": min,
}  # fmt: skip
_UNARY: dict[str, Callable] = {"float": float, "neg": operator.neg, "sqrt": math.sqrt, "abs": abs}
_TENSORS: dict[str, Callable] = {
    **_BINARY, "max": _C.torch.maximum, "min": _C.torch.minimum, "**": _C.torch.pow, "float": lambda t: t, "neg": _C.torch.neg,
    "sqrt": _C.torch.sqrt, "abs": _C.torch.abs,
}  # fmt: skip
# Names of functions of tensors that compute with a SymFloat.
_ARITHMETIC = frozenset(
    f"{name}{suffix}"
    for name in ("add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide")
    for suffix in ("", "_")
)
# The functions of torch of symbolic numbers, by the sign of their operation.
_SYMBOLIC = {"sym_max": "max", "sym_min": "min", "sym_sqrt": "sqrt", "sym_float": "float"}
_MOST = (1 << 63) - 1  # sizes, and the numbers that are computed from them, do not exceed it
_SERIAL_NUMBERS = itertools.count()


def _value(operand: Any) -> Any:
    """A number of the example, of which no run is required."""
    return operand.value if type(operand) is SymFloat else operand


def _is_number(value: Any) -> bool:
    return type(value) in (SymFloat, float, int, _C.SymInt)


class SymFloat:
    """A float that a traced function has computed from sizes.

    Attributes:
        value: of the trace's example.
    """

    def __init__(self, node: Any) -> None:
        raise TypeError("cannot create 'SymFloat' instances: a traced function computes them from sizes, for example as x.size(0) * 0.5")

    @classmethod
    def of(cls, sign: str, *operands: Any) -> Any:
        """The result of an operation of numbers; a float if none of them depends on sizes."""
        if not any(type(v) in (SymFloat, _C.SymInt) for v in operands):
            return _operation(sign)(*operands)
        if sign != "**":
            operands = tuple(map(_by_positive, operands))
        if _is_defined(sign, operands):
            value = _operation(sign)(*(_C.peek_symbolic_int(v) if type(v) is _C.SymInt else _value(v) for v in operands))
            if type(value) is float and math.isfinite(value):
                made = object.__new__(cls)
                made.value, made._sign, made._operands, made._tensor = value, sign, operands, None
                made._number = next(_SERIAL_NUMBERS)  # greater than its operands'
                made._sizes = _union(_sizes_of(v) for v in operands)
                made._direction, made._is_positive = _direction(sign, operands), _is_positive(sign, operands)
                made._side = 1 if made._is_positive else _side(sign, operands)
                return made
        return _operation(sign)(*map(_required, operands))

    def __torch_function__(self, func: Any, _types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if getattr(func, "__name__", "") in _ARITHMETIC and len(args) == 2 and not kwargs and isinstance(args[0], Tensor):
            return _of_tensors(func, *args)
        sign = _SYMBOLIC.get(getattr(func, "__name__", ""))
        if sign is not None and not kwargs and all(map(_is_number, args)):
            return SymFloat.of(sign, *(SymFloat.of("float", a) if type(a) in (int, _C.SymInt) else a for a in args))
        args, kwargs = _plain((args, kwargs or {}))
        return func(*args, **kwargs)

    def as_tensor(self) -> Tensor:
        """A float64 tensor without dimensions, which the runs of the Program compute."""
        if self._tensor is None:
            before = _C.is_grad_enabled()
            _C.set_grad_enabled(False)
            try:
                for made in self._in_order():
                    if made._tensor is None:
                        made._tensor = _TENSORS[made._sign](*map(_as_tensor, made._operands))
            finally:
                _C.set_grad_enabled(before)
        return self._tensor

    def _in_order(self) -> list[SymFloat]:
        """The SymFloats that it was computed from, each once and behind its operands, and itself."""
        found, waiting = {}, [self]
        while waiting:
            made = waiting.pop()
            if made._number not in found:
                found[made._number] = made
                waiting += (v for v in made._operands if type(v) is SymFloat)
        return [found[number] for number in sorted(found)]

    def _at(self, order: list[SymFloat], number: Callable) -> float:
        """Its value with the given numbers of its SymInts. `order` is _in_order()."""
        values: dict[int, float] = {}
        for made in order:
            values[made._number] = _operation(made._sign)(*(
                values[v._number] if type(v) is SymFloat else number(v) if type(v) is _C.SymInt else v for v in made._operands
            ))  # fmt: skip
        return values[self._number]

    def compared(self, sign: str, other: Any) -> bool:
        """Whether self <sign> other. Runs are required to have the outcome, whatever their sizes otherwise."""
        relation = RELATIONS[sign]
        size = self._sizes[0] if len(self._sizes) == 1 else None
        if type(other) not in (int, float) or size is None or not self._direction:
            return relation(float(self), float(other))
        if sign in ("==", "!=") and self.value != other:  # requires on which side it is
            return self.compared("<" if self.value < other else ">", other) == (sign == "!=")
        if sign in ("==", "!=") or not size >= 1:  # a number that is computed from sizes may be negative
            return relation(float(self), float(other))
        order, low, high = self._in_order(), 1, _MOST  # the outcome changes once at most
        try:
            at_low = relation(self._at(order, lambda _size: low), other)
            if at_low == relation(self._at(order, lambda _size: high), other):
                return at_low
            while high - low > 1:
                middle = (low + high) // 2
                same = relation(self._at(order, lambda _size, middle=middle: middle), other) == at_low
                low, high = (middle, high) if same else (low, middle)
        except (ArithmeticError, ValueError):  # not defined, or too large, for some of the numbers
            return relation(float(self), float(other))
        return at_low if size < high else not at_low

    def __float__(self) -> float:
        return self._at(self._in_order(), int)

    def __neg__(self) -> Any:
        return SymFloat.of("neg", self)

    def __pos__(self) -> SymFloat:
        return self

    def __abs__(self) -> Any:
        return SymFloat.of("abs", self)

    def __bool__(self) -> bool:
        return bool(float(self))

    def __copy__(self) -> SymFloat:
        return self

    def __deepcopy__(self, memo: dict) -> SymFloat:
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(float, name):
            raise AttributeError(f"'SymFloat' object has no attribute '{name}'")
        return getattr(float(self), name)


def _operation(sign: str) -> Callable:
    return (_UNARY if sign in _UNARY else _BINARY)[sign]


def _required(operand: Any) -> Any:
    """Returns the value of a symbolic number as an int or float. Every later run of the Program must have the same value."""
    return float(operand) if type(operand) is SymFloat else int(operand) if type(operand) is _C.SymInt else operand


def _sizes_of(operand: Any) -> tuple:
    """The SymInts that a number was computed from, each once."""
    return operand._sizes if type(operand) is SymFloat else (operand,) if type(operand) is _C.SymInt else ()


def _union(groups: Iterable[tuple]) -> tuple:
    return tuple({id(size): size for group in groups for size in group}.values())


def _by_positive(operand: Any) -> Any:
    """A SymInt that is negative in the example as the negative of a positive one, of which more is known."""
    if type(operand) is _C.SymInt and _C.peek_symbolic_int(operand) < 0:
        return SymFloat.of("neg", SymFloat.of("float", -operand))
    return operand


def _direction(sign: str, operands: tuple) -> int:
    """How a result depends on its only SymInt, from 1 upwards. 1: it never decreases; -1: it never increases; 0: unknown."""
    signs = [v._direction if type(v) is SymFloat else 1 if type(v) is _C.SymInt else None for v in operands]
    numbers = [None if s is not None else v for s, v in zip(signs, operands)]
    if sign in ("float", "sqrt"):
        return signs[0]
    if sign == "neg":
        return -signs[0]
    if sign == "abs":
        sides = [v._side if type(v) is SymFloat else 1 for v in operands]
        return signs[0] * sides[0]
    (a, b), (m, n) = signs, numbers
    if sign in ("+", "max", "min"):
        return a if b is None else b if a is None else a if a == b else 0
    if sign == "-":
        return a if b is None else -b if a is None else a if a == -b else 0
    if sign == "*" and (a is None or b is None):
        direction, by = (a, n) if b is None else (b, m)
        return direction if by >= 0 else -direction
    if sign == "/" and b is None:
        return a if n > 0 else -a
    if sign == "/" and a is None and type(operands[1]) is _C.SymInt:
        return -1 if m >= 0 else 1
    if sign == "**" and b is None and type(operands[0]) is _C.SymInt:
        return 1 if n >= 0 else -1
    return 0


def _side(sign: str, operands: tuple) -> int:
    """-1 if an operation's result is known to be negative if the SymInts are positive; 0 if that is not known."""
    sides = [v._side if type(v) is SymFloat else 1 if type(v) is _C.SymInt else (v > 0) - (v < 0) for v in operands]
    if sign == "neg":
        return -sides[0]
    return sides[0] * sides[1] if sign in ("*", "/") else sides[0] if sign == "float" else 0


def _is_positive(sign: str, operands: tuple) -> bool:
    """Whether an operation's result is known to be positive if the SymInts are."""
    known = [v._is_positive if type(v) is SymFloat else type(v) is _C.SymInt or v > 0 for v in operands]
    if sign in ("abs", "neg", "*", "/"):
        return sign == "abs" and type(operands[0]) is SymFloat and operands[0]._side != 0 or sign != "abs" and _side(sign, operands) > 0
    return known[0] if sign == "**" else any(known) if sign == "max" else sign != "-" and all(known)


def _is_above_0(number: Any) -> bool:
    """Whether a number is positive. Runs are required to have the outcome."""
    if type(number) is SymFloat and number._is_positive and all(size >= 1 for size in number._sizes):
        return True
    return bool(number > 0)


def _is_defined(sign: str, operands: tuple) -> bool:
    """Whether an operation gives a real number. Runs are required to have the outcome: tensors compute nan and inf otherwise."""
    if sign == "/":
        return _is_above_0(operands[1]) or bool(operands[1] < 0)
    if sign == "sqrt":
        return _is_above_0(operands[0]) or bool(operands[0] >= 0)
    if sign != "**":
        return True
    base, exponent = operands
    if type(exponent) not in (int, float):
        return _is_above_0(base)
    if exponent >= 0:
        return float(exponent).is_integer() or _is_above_0(base) or bool(base >= 0)
    return _is_above_0(base) or (float(exponent).is_integer() and bool(base < 0))


def _as_tensor(operand: Any) -> Any:
    if type(operand) is SymFloat:
        return operand._tensor
    return _C.torch.full([], operand, dtype=_C.float64)


def _of_tensors(function: Callable, a: Any, b: Any) -> Any:
    """The result of an operator for a tensor and a SymFloat."""
    tensor = a if isinstance(a, Tensor) else b
    takes_tensor = tensor.dtype in (_C.float32, _C.float64) and tensor.dim() > 0 and tensor.device.type == "cpu"
    number = (lambda v: v.as_tensor()) if takes_tensor and _C.is_tracing() else float
    a, b = (number(v) if type(v) is SymFloat else v for v in (a, b))
    return function(a, b)


def _plain(value: Any) -> Any:
    """A value with floats in place of SymFloats."""
    if type(value) is SymFloat:
        return float(value)
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    return {k: _plain(v) for k, v in value.items()} if type(value) is dict else value


def _arithmetic(sign: str, is_reflected: bool) -> Callable:
    def compute(self: SymFloat, other: Any) -> Any:
        other = int(other) if type(other) is bool else other
        a, b = (other, self) if is_reflected else (self, other)
        if isinstance(other, Tensor) and sign in ("+", "-", "*", "/"):
            return _of_tensors(_BINARY[sign], a, b)
        if isinstance(other, Tensor) or type(other) is complex:
            return _BINARY[sign](*(float(v) if v is self else v for v in (a, b)))
        return SymFloat.of(sign, a, b) if _is_number(other) else NotImplemented

    return compute


for _sign, _name in (("+", "add"), ("-", "sub"), ("*", "mul"), ("/", "truediv"), ("**", "pow")):
    setattr(SymFloat, f"__{_name}__", _arithmetic(_sign, False))
    setattr(SymFloat, f"__r{_name}__", _arithmetic(_sign, True))
for _sign, _relation in RELATIONS.items():
    setattr(
        SymFloat,
        f"__{_relation.__name__}__",
        lambda self, other, sign=_sign: SymBool.of(sign, self, other) if _is_number(other) else NotImplemented,
    )


def _of_float(name: str) -> Callable:
    return lambda self, *args: getattr(float(self), name)(*map(_plain, args))


for _name in (
    "ceil", "divmod", "floor", "floordiv", "format", "hash", "int", "mod", "rdivmod", "repr", "rfloordiv", "rmod", "round", "str", "trunc",
):  # fmt: skip
    setattr(SymFloat, f"__{_name}__", _of_float(f"__{_name}__"))
SymFloat.__reduce__ = lambda self: (float, (float(self),))
set_float_maker(SymFloat.of)

set_module("teletensor", SymFloat)
