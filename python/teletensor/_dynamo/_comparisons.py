"""Comparisons of values: operators, equality as containers use it, and identity."""

from __future__ import annotations

import collections
import operator
import weakref
from collections.abc import Callable
from typing import Any

from .. import _C
from .._C import Tensor
from .._layouts import layout, memory_format
from ._source import CHECK_IS
from ._symbols import is_symbolic_operand
from ._values import (
    Break,
    BuiltValue,
    ComputedFloat,
    ComputedItem,
    ConditionValue,
    Constant,
    DequeValue,
    DictValue,
    DictView,
    ExceptionValue,
    FloatValue,
    FunctionValue,
    IdValue,
    ItemValue,
    ObjectValue,
    Opaque,
    Raised,
    RunTimeNumber,
    SequenceValue,
    SetValue,
    SliceValue,
    SymbolValue,
    TensorValue,
    Value,
    kind,
)  # fmt: skip

COMPARE = {
    "<": ("lt", "gt", operator.lt), "<=": ("le", "ge", operator.le), "==": ("eq", "eq", operator.eq), "!=": ("ne", "ne", operator.ne),
    ">": ("gt", "lt", operator.gt), ">=": ("ge", "le", operator.ge),
}  # fmt: skip
_WITHOUT_METHODS = (Constant, SequenceValue, DictValue, SetValue, FunctionValue, DequeValue)  # that equal no value of another kind


def fold(function: Callable, *args: Any) -> Value:
    """A constant computed from constants; raises Raised as the function raises."""
    try:
        result = function(*args)
    except Exception as e:  # noqa: BLE001 - the function's exception
        if type(e) in (TypeError, ValueError, ZeroDivisionError, OverflowError, IndexError, KeyError, AttributeError):
            raise Raised(ExceptionValue(type(e), [Constant(a) for a in e.args])) from None
        raise Break(f"{getattr(function, '__name__', function)} raises {type(e).__name__}") from None
    return Constant(result)


class Comparisons:
    """A part of Executor."""

    def compare(self, sign: str, a: Value, b: Value) -> Value:
        """a < b and the like."""
        a, b = self.real(a), self.real(b)
        name, reflected, function = COMPARE[sign]
        if isinstance(a, RunTimeNumber) or isinstance(b, RunTimeNumber):
            found = self.operation_of_run_time(sign, a, b)
            if found is None:
                raise Break(f"{sign} of a number that differs from call to call and a {kind(b if isinstance(a, RunTimeNumber) else a)}")
            return found
        if isinstance(a, ComputedFloat) or isinstance(b, ComputedFloat):
            numbers = [self.symbolic_number(v) for v in (a, b)]
            if None not in numbers:
                return Constant(bool(function(*numbers)))
        a, b = (self.plain(v) if isinstance(v, FloatValue) else v for v in (a, b))
        if isinstance(a, ItemValue) and isinstance(b, TensorValue):
            a = self.operand_of_item(a, b)
        elif isinstance(b, ItemValue) and isinstance(a, TensorValue):
            b = self.operand_of_item(b, a)
        if not isinstance(a, TensorValue) and not isinstance(b, TensorValue):
            a, b = self.as_number(a), self.as_number(b)
        if is_symbolic_operand(a) and is_symbolic_operand(b):
            if self.has_unbacked([a, b]):
                return self.condition(sign, a, b)
            operands = [v.example if isinstance(v, SymbolValue) else v.value for v in (a, b)]
            return Constant(bool(function(*operands)))
        if not isinstance(a, TensorValue) and not isinstance(b, TensorValue):
            a, b = self.plain(a), self.plain(b)
        if isinstance(a, Constant) and isinstance(b, Constant):
            methods = f"__{name}__", f"__{reflected}__"
            is_folded = self.is_folded(a, *methods) and self.is_folded(b, *methods)
            if is_folded or sign in ("==", "!=") and _compares_by_identity(a.value, b.value):
                return fold(function, a.value, b.value)
            raise Break(f"{sign} of a {kind(a.value)}")
        if isinstance(a, TensorValue) or isinstance(b, TensorValue):
            other = b if isinstance(a, TensorValue) else a
            if isinstance(other, (TensorValue, Constant, SymbolValue)):
                return self.call_in_graph("call_function", function, [a, b])
            raise Break(f"{sign} of a tensor and a {kind(other)}")
        if isinstance(a, SequenceValue) and isinstance(b, SequenceValue):
            if (a.cls is list) != (b.cls is list):
                if sign in ("==", "!="):
                    return Constant(sign == "!=")
                raise Break("sequences of different types are compared")
            return self._compare_sequences(sign, a, b)
        if isinstance(a, DequeValue) and isinstance(b, DequeValue):
            return self._compare_sequences(sign, a, b)
        if all(isinstance(v, SetValue) or isinstance(v, DictView) and v.is_set for v in (a, b)):
            a, b = (v if isinstance(v, SetValue) else self.set_of(v) for v in (a, b))
            return Constant(function(set(a.items), set(b.items)))
        if sign in ("==", "!="):
            return self._equality(sign, a, b)
        for x, method, y in ((a, f"__{name}__", b), (b, f"__{reflected}__", a)):
            result = self.call_method_named(x, method, [y])
            if result is not None and not self.is_not_implemented(result):
                return result
        raise Break(f"{sign} of a {kind(a)} and a {kind(b)}")

    def _compare_sequences(self, sign: str, a: SequenceValue, b: SequenceValue) -> Value:
        if sign in ("==", "!=") and len(a.items) != len(b.items):
            return Constant(sign == "!=")
        for x, y in zip(a.items, b.items):
            x, y = self.real(x), self.real(y)
            if not self.is_or_equals(x, y):
                return Constant(sign == "!=") if sign in ("==", "!=") else self.compare(sign, x, y)
        return fold(COMPARE[sign][2], len(a.items), len(b.items))

    def _equality(self, sign: str, a: Value, b: Value) -> Value:
        equal: bool | None = None
        if isinstance(a, IdValue) and isinstance(b, IdValue):
            return Constant((a.of is b.of) == (sign == "=="))
        if isinstance(a, DictValue) and isinstance(b, DictValue):
            has_order = a.cls is b.cls is collections.OrderedDict
            same_keys = list(a.items) == list(b.items) if has_order else a.items.keys() == b.items.keys()
            equal = same_keys and all(self.is_or_equals(v, b.items[k][1]) for k, (_, v) in list(a.items.items()))
        elif isinstance(a, (ObjectValue, ExceptionValue)) or isinstance(b, (ObjectValue, ExceptionValue)):
            for x, y in ((a, b), (b, a)):
                if sign == "!=":
                    result = self.call_method_named(x, "__ne__", [y])
                    if result is not None and not self.is_not_implemented(result):
                        return result
                result = self.call_method_named(x, "__eq__", [y])
                if result is not None and not self.is_not_implemented(result):
                    return result if sign == "==" else Constant(not self.truth(result))
            entries = [v if isinstance(v, (DictValue, SequenceValue, SetValue)) else getattr(v, "entries", None) for v in (a, b)]
            if a is not b and None not in entries:  # dict.__eq__
                if all(issubclass(v.cls, collections.OrderedDict) for v in (a, b)):
                    raise Break("== of OrderedDicts")
                return self._equality(sign, *(DictValue(dict(e.items)) if isinstance(e, DictValue) else e for e in entries))
            equal = a is b
            self.note_identity(a, b)
        elif isinstance(a, SliceValue) and isinstance(b, SliceValue):
            equal = all(self.truth(self.compare("==", x, y)) for x, y in zip(a.parts, b.parts))
        elif type(a) is not type(b) and isinstance(a, _WITHOUT_METHODS) and isinstance(b, _WITHOUT_METHODS):
            equal = False
        elif isinstance(a, FunctionValue) and isinstance(b, FunctionValue):
            equal = a is b
            self.note_identity(a, b)
        if equal is None:
            raise Break(f"{sign} of a {kind(a)} and a {kind(b)}")
        return Constant(equal == (sign == "=="))

    def is_same(self, a: Value, b: Value) -> bool:
        """a is b"""
        a, b = self.real(a), self.real(b)
        if a is b:
            return True
        if isinstance(a, TensorValue) and isinstance(b, TensorValue) and (a.may_exist or b.may_exist):
            raise Break("whether a gradient is another tensor")
        if isinstance(a, RunTimeNumber) and isinstance(b, RunTimeNumber):
            raise Break("the identity of numbers that differ from call to call")
        of_values = ItemValue, ComputedItem, ConditionValue
        if any(isinstance(v, of_values) for v in (a, b)) and all(isinstance(v, (*of_values, Constant)) for v in (a, b)) and a.cls is b.cls:
            raise Break("the identity of a number that depends on values")
        a, b = self.plain(a), self.plain(b)
        if any(isinstance(v, Opaque) for v in (a, b)) and any(isinstance(v, BuiltValue) and v.make is weakref.ref for v in (a, b)):
            raise Break("whether a weak reference is another one")
        if isinstance(a, Opaque) and isinstance(b, Opaque):
            for value in (a, b):
                self.guards.check(CHECK_IS, value.source, value.obj)
            return a.obj is b.obj
        if isinstance(a, Constant) and isinstance(b, Constant):
            if a.value is b.value:
                for value in (a, b):
                    if value.source is not None:
                        self.guards.check(CHECK_IS, value.source, value.value)
                return True
            singletons = (type(None), bool, type(Ellipsis), type, type(NotImplemented), _C.dtype, layout, memory_format)
            if isinstance(a.value, singletons) or isinstance(b.value, singletons) or type(a.value) is not type(b.value):
                return False
            if self.is_folded(a) and a.value != b.value:
                return False
            raise Break("the identity of immutable objects")
        if isinstance(a, Constant) or isinstance(b, Constant):
            return False
        exist = [getattr(v, "original", None) is not None and v.source is not None for v in (a, b)]
        if type(a) is type(b) and not all(exist):
            if isinstance(a, (SequenceValue, SetValue)) and a.cls is b.cls and a.cls not in (list, set) and len(a.items) == len(b.items):
                raise Break(f"the identity of a {a.cls.__name__} that the function makes")  # which may be an existing one
            if any(v.source is not None and not e for v, e in zip((a, b), exist)) and not isinstance(a, BuiltValue):
                raise Break(f"the identity of a {kind(a)}")
        self.note_identity(a, b)
        return False

    def note_identity(self, *values: Value) -> None:
        """Existing objects whose identity decides: different ones must not be one object in a later call."""
        if all(v.source is not None and not isinstance(v, (Constant, SymbolValue, FloatValue)) for v in values):
            self.compared.update((id(v), v) for v in values)

    def is_or_equals(self, a: Value, b: Value) -> bool:
        """a is b or a == b, as containers compare their elements."""
        a, b = self.real(a), self.real(b)
        if a is b:
            return True
        self.note_identity(a, b)
        a, b = (self.plain(v) if isinstance(v, FloatValue) else v for v in (a, b))
        if all(isinstance(v, Constant) and isinstance(v.value, (float, complex)) and v.value != v.value for v in (a, b)):
            raise Break("whether two NaN are one object")
        return self.truth(self.compare("==", a, b))


def _compares_by_identity(a: Any, b: Any) -> bool:
    return any(type(x).__eq__ is object.__eq__ and not isinstance(x, Tensor) for x in (a, b))
