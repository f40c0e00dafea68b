"""SymBool: a comparison of sizes, and what a function computes from comparisons.

Python code that needs the outcome (`if`, `and`, `or`, `not`, a format) continues with that of the example, which runs are then required
to give. `&`, `|`, `^`, torch.sym_not() and torch.sym_ite() require nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

from . import _C
from ._C import SymInt
from ._lazy import set_module

RELATIONS: dict[str, Callable] = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
LOGIC: dict[str, Callable] = {
    "and": operator.and_, "or": operator.or_, "eq": operator.eq, "xor": operator.ne, "not": operator.not_,
}  # fmt: skip
_NEGATED = {"<": ">=", "<=": ">", "==": "!=", "!=": "==", ">": "<=", ">=": "<", "eq": "xor", "xor": "eq"}


class SymBool:
    """A bool that a traced or recorded function has computed from sizes.

    Attributes:
        sign: of a relation, whose operands are numbers, or "and", "or", "eq", "xor" or "not", whose operands are bools.
        operands: what it was computed from.
    """

    _value: bool  # the outcome for the example, of which no run is required

    def __init__(self, node: Any) -> None:
        raise TypeError("cannot create 'SymBool' instances: a traced function computes them from sizes, for example as x.size(0) > 2")

    @classmethod
    def of(cls, sign: str, *operands: Any) -> SymBool:
        """The result of a relation of numbers, or of a logical operation of bools."""
        made = object.__new__(cls)
        if sign in RELATIONS and any(type(v) is float for v in operands):
            operands = tuple(v.as_float() if hasattr(type(v), "as_float") else _float_of(v) for v in operands)
        made.sign, made.operands = sign, operands
        made._value = bool((RELATIONS.get(sign) or LOGIC[sign])(*map(hint, operands)))
        return made

    def comparisons(self) -> Iterator[SymBool]:
        """The relations of numbers that it was computed from."""
        if self.sign in RELATIONS:
            yield self
        else:
            for operand in self.operands:
                if type(operand) is SymBool:
                    yield from operand.comparisons()

    def __bool__(self) -> bool:
        if self.sign in RELATIONS:
            return _decided(self.sign, *self.operands)
        if self.sign in ("and", "or"):  # one operand may determine the outcome
            decisive = self.sign == "or"
            first, second = sorted(self.operands, key=lambda v: hint(v) is not decisive)
            return decisive if bool(first) is decisive else bool(second)
        return bool(LOGIC[self.sign](*map(bool, self.operands)))

    def _as_number(self) -> Any:
        """1 or 0, which runs compute; None if only Python could."""
        if self.sign in LOGIC:
            parts = [v._as_number() if type(v) is SymBool else int(v) for v in self.operands]
            if None in parts:
                return None
            if self.sign == "not":
                return 1 - parts[0]
            a, b = parts
            if self.sign in ("and", "or"):
                return _minimum(a, b) if self.sign == "and" else _maximum(a, b)
            return (a + b) % 2 if self.sign == "xor" else (a + b + 1) % 2
        a, b = self.operands
        if not all(type(v) in (int, SymInt) for v in (a, b)):
            return None
        if self.sign in ("==", "!="):
            differ = _clamped(_maximum(a - b, b - a))
            return differ if self.sign == "!=" else 1 - differ
        difference = b - a if self.sign in ("<", "<=") else a - b
        return _clamped(difference + 1 if self.sign in ("<=", ">=") else difference)

    def as_int(self) -> Any:
        """1 or 0: an int that the Program of a trace or the graph computes, or the outcome, which runs are required to have."""
        return self.__sym_ite__(1, 0)

    def __sym_not__(self) -> SymBool:
        if self.sign in ("and", "or"):
            return SymBool.of("or" if self.sign == "and" else "and", *map(negated, self.operands))
        is_ordered = self.sign in ("<", "<=", ">", ">=") and any(type(hint(v)) is float for v in self.operands)
        if self.sign == "not" or is_ordered:  # no opposite relation for nan
            return self.operands[0] if self.sign == "not" else SymBool.of("not", self)
        return SymBool.of(_NEGATED[self.sign], *self.operands)

    def __sym_ite__(self, t: Any, f: Any) -> Any:
        if type(t) in (bool, SymBool):
            return (self & t) | (negated(self) & f)
        owner = next((v for c in self.comparisons() for v in (*c.operands, t, f) if hasattr(type(v), "chosen")), None)
        if owner is not None:
            return owner.chosen(self, t, f)
        number = self._as_number() if all(type(v) in (int, SymInt) for v in (t, f)) else None
        return (t if self else f) if number is None else f + number * (t - f)

    def __sym_float__(self) -> Any:
        return _float_of(self.as_int())

    def __torch_function__(self, func: Any, _types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if type(func) is _C.OverridableFunction:
            return func.__wrapped__(*args, **(kwargs or {}))
        return func(*map(_decided_arguments, args), **{k: _decided_arguments(v) for k, v in (kwargs or {}).items()})

    def __int__(self) -> int:
        return int(bool(self))

    __index__ = __int__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        import numpy  # not loaded with the package

        if copy is False:
            raise ValueError("Unable to avoid copy while creating an array as requested.")
        return numpy.array(bool(self), dtype or bool)

    def __float__(self) -> float:
        return float(bool(self))

    def __hash__(self) -> int:
        return hash(bool(self))

    def __repr__(self) -> str:
        return str(bool(self))

    def __format__(self, spec: str) -> str:
        return format(bool(self), spec)

    def __reduce__(self) -> tuple:
        return bool, (bool(self),)

    def __copy__(self) -> SymBool:
        return self

    def __deepcopy__(self, _memo: dict) -> SymBool:
        return self


def negated(value: Any) -> Any:
    """torch.sym_not() of a bool or a SymBool."""
    return value.__sym_not__() if type(value) is SymBool else not value


def hint(value: Any) -> Any:
    """A number or bool as it is for the example, of which no run is required."""
    if type(value) is SymInt:
        return _C.peek_symbolic_int(value)
    return value.plain() if hasattr(type(value), "plain") else value._value if type(value) is SymBool else getattr(value, "value", value)


def _decided(sign: str, left: Any, right: Any) -> bool:
    """The outcome of a relation of numbers, of which at least one is symbolic. Runs are required to have it."""
    for a, b, relation in ((left, right, sign), (right, left, {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(sign, sign))):
        if hasattr(type(a), "compared"):
            return bool(a.compared(relation, b))
    return _C.compare_symbolic_ints(sign, left, right)


def _decided_arguments(value: Any) -> Any:
    if type(value) in (list, tuple):
        return type(value)(map(_decided_arguments, value))
    return bool(value) if type(value) is SymBool else value


def _float_of(value: Any) -> Any:
    """A number as a float, which is symbolic if the number is."""
    return _floats["of"]("float", value) if type(value) is SymInt else float(value) if type(value) is int else value


_floats: dict[str, Callable] = {}  # of: SymFloat.of, set by its module


def set_float_maker(maker: Callable) -> None:
    """Sets the function of an operation's sign and its operands that returns a SymFloat."""
    _floats["of"] = maker


def _maximum(a: Any, b: Any) -> Any:
    return a.__sym_max__(b) if type(a) is SymInt else b.__sym_max__(a) if type(b) is SymInt else max(a, b)


def _minimum(a: Any, b: Any) -> Any:
    return a.__sym_min__(b) if type(a) is SymInt else b.__sym_min__(a) if type(b) is SymInt else min(a, b)


def _clamped(difference: Any) -> Any:
    """1 for an int of at least 1, otherwise 0."""
    return difference.__sym_min__(1).__sym_max__(0) if type(difference) is SymInt else min(max(difference, 0), 1)


def _is_bool(value: Any) -> bool:
    return type(value) in (SymBool, bool) or type(value) is int and value in (0, 1)


def _logical(sign: str, function: Callable, is_reflected: bool) -> Callable:
    def compute(self: SymBool, other: Any) -> Any:
        if _is_bool(other):
            return SymBool.of(sign, self, other if type(other) is SymBool else bool(other))
        return function(other, bool(self)) if is_reflected else function(bool(self), other)

    return compute


def _arithmetic(function: Callable, is_reflected: bool) -> Callable:
    def compute(self: SymBool, other: Any) -> Any:
        other = bool(other) if type(other) is SymBool else other
        return function(other, bool(self)) if is_reflected else function(bool(self), other)

    return compute


for _sign, _name, _function in (("and", "and", operator.and_), ("or", "or", operator.or_), ("xor", "xor", operator.xor)):
    setattr(SymBool, f"__{_name}__", _logical(_sign, _function, False))
    setattr(SymBool, f"__r{_name}__", _logical(_sign, _function, True))
SymBool.__eq__, SymBool.__ne__ = _logical("eq", operator.eq, False), _logical("xor", operator.ne, False)
for _name in ("add", "sub", "mul", "floordiv", "mod", "truediv", "pow", "lshift", "rshift"):
    setattr(SymBool, f"__{_name}__", _arithmetic(getattr(operator, _name), False))
    setattr(SymBool, f"__r{_name}__", _arithmetic(getattr(operator, _name), True))
for _function in (operator.neg, operator.pos, operator.abs, operator.invert):
    setattr(SymBool, f"__{_function.__name__}__", lambda self, function=_function: function(bool(self)))
_C.set_symbolic_bool_type(SymBool)

set_module("teletensor", SymBool)
