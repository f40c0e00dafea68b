"""Operators on values: arithmetic, comparisons, truth, items."""

from __future__ import annotations

import collections
import enum
import operator
import types
from typing import Any

from .. import _C
from .._layouts import layout, memory_format
from ..utils._pytree import TreeSpec
from . import _deques
from ._attributes import MISSING, lookup, raise_
from ._comparisons import fold
from ._source import constant
from ._symbols import is_symbolic_operand, unbacked_dims
from ._unbacked import is_item
from ._values import (
    Break,
    BuiltinMethod,
    BuiltValue,
    ComputedFloat,
    ConditionValue,
    Constant,
    DequeValue,
    DictValue,
    DictView,
    ExceptionValue,
    FloatOperand,
    FloatValue,
    FunctionValue,
    ItemValue,
    IteratorValue,
    MatchValue,
    MethodValue,
    ModuleSlice,
    ObjectValue,
    PartialValue,
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

# The functions of the operators, with their special methods.
BINARY = {
    "+": ("add", operator.add), "-": ("sub", operator.sub), "*": ("mul", operator.mul), "/": ("truediv", operator.truediv),
    "//": ("floordiv", operator.floordiv), "%": ("mod", operator.mod), "**": ("pow", operator.pow), "@": ("matmul", operator.matmul),
    "<<": ("lshift", operator.lshift), ">>": ("rshift", operator.rshift), "&": ("and", operator.and_), "|": ("or", operator.or_),
    "^": ("xor", operator.xor),
}  # fmt: skip
IN_PLACE = {sign + "=": (f"i{name}", getattr(operator, f"i{name}")) for sign, (name, _) in BINARY.items()}
UNARY = {
    "UNARY_NEGATIVE": ("__neg__", operator.neg), "UNARY_POSITIVE": ("__pos__", operator.pos),
    "UNARY_INVERT": ("__invert__", operator.invert),
}  # fmt: skip
_MAX_TEXT = 1 << 20
_GENERIC = (list, dict, tuple, set, frozenset, type, collections.OrderedDict, collections.defaultdict, collections.deque)


class Operators:
    """A part of Executor."""

    def binary(self, sign: str, a: Value, b: Value) -> Value:
        """a + b, a += b and the like."""
        a, b = self.real(a), self.real(b)
        if not isinstance(a, TensorValue) and not isinstance(b, TensorValue):
            a, b = self.as_number(a), self.as_number(b)
        in_place = sign.endswith("=")
        name, function = IN_PLACE[sign] if in_place else BINARY[sign]
        if isinstance(a, ObjectValue) or isinstance(b, ObjectValue):
            owner, by = a, f"__{name}__"
            a, b = self._contents(a, by), self._contents(b, f"__r{name.removeprefix('i')}__")
            if in_place and a is not owner and a.cls in (list, set):
                self.binary(sign, a, b)
                return owner
        found = self.float_of_items(sign.removesuffix("=") if in_place else sign, a, b)
        if found is not None:
            return found
        if isinstance(a, RunTimeNumber) or isinstance(b, RunTimeNumber):
            found = self.operation_of_run_time(sign.removesuffix("=") if in_place else sign, a, b)
            if found is not None:
                return found
            a, b = self.run_time_operand(a, sign, b), self.run_time_operand(b, sign, a)
        if isinstance(a, ComputedFloat) or isinstance(b, ComputedFloat):
            found = self.binary_of_symbols(sign.rstrip("=") if in_place else sign, a, b)
            if found is not None:
                return found
        if isinstance(a, FloatValue) or isinstance(b, FloatValue):
            a, b = self.float_operand(a, sign, b), self.float_operand(b, sign, a)
        if isinstance(a, SymbolValue) or isinstance(b, SymbolValue):
            found = self.binary_of_symbols(sign.rstrip("=") if in_place else sign, a, b)
            if found is not None:
                return found
            if not isinstance(a, TensorValue) and not isinstance(b, TensorValue):
                a, b = self.plain(a), self.plain(b)
        if isinstance(a, Constant) and isinstance(b, Constant):
            methods = f"__{name}__", f"__{name.removeprefix('i')}__", f"__r{name.removeprefix('i')}__"
            if self.is_folded(a, *methods) and self.is_folded(b, *methods):
                self._check_size(sign, a.value, b.value)
                return fold(function, a.value, b.value)
            raise Break(f"{sign} of a {kind(a.value)} and a {kind(b.value)}")
        if isinstance(a, ItemValue) and isinstance(b, TensorValue) and sign in ("+", "-", "*", "/"):
            a = self.operand_of_item(a, b)
        elif isinstance(b, ItemValue) and isinstance(a, TensorValue) and sign in ("+", "-", "*", "/"):
            b = self.operand_of_item(b, a)
        if isinstance(a, TensorValue) or isinstance(b, TensorValue):
            other = b if isinstance(a, TensorValue) else a
            if isinstance(other, (TensorValue, Constant, FloatOperand, SymbolValue)) or is_item(other):
                if in_place and not isinstance(a, TensorValue):  # a number is not changed
                    function = BINARY[sign.rstrip("=")][1]
                return self.call_in_graph("call_function", function, [a, b])
            if not isinstance(other, ObjectValue):
                raise Break(f"{sign} of a tensor and a {kind(other)}")
        if in_place:
            changed = self._in_place(sign, a, b)
            if changed is not None:
                return changed
        found = self._sequences(sign.rstrip("=") if in_place else sign, a, b)
        if found is not None:
            return found
        found = self._by_methods(a, b, f"__{name}__" if in_place else None, name.removeprefix("i") if in_place else name)
        if found is not None:
            return found
        raise Break(f"{sign} of a {kind(a)} and a {kind(b)}")

    def _contents(self, value: Value, method: str) -> Value:
        """The contents of an object of a subclass of list, tuple or set that does not define the method; other values themselves."""
        found = self.entries_of(value, method)
        return value if found is None or isinstance(found, DictValue) else found

    def _check_size(self, sign: str, a: Any, b: Any) -> None:
        big = isinstance(a, int) and isinstance(b, int) and abs(b) > 10_000
        if sign.rstrip("=") in ("**", "<<") and big:
            raise Break("a very large number")
        if sign.rstrip("=") == "*" and any(isinstance(x, (str, bytes)) and isinstance(y, int) and len(x) * y > _MAX_TEXT
                                           for x, y in ((a, b), (b, a))):  # fmt: skip
            raise Break("a very long string")

    def is_folded(self, value: Constant, *methods: str) -> bool:
        """Whether operators of the constant run no code of the user's; of an Enum: those by these special methods."""
        if isinstance(value.value, enum.Enum):
            return all(self._is_of_library(type(value.value), name) for name in ("__eq__", *methods))
        if self.is_numpy_scalar(value.value):
            self.guard_numpy_errors()
        library = (_C.dtype, _C.device, layout, memory_format, TreeSpec)
        return type(value.value).__module__ in ("builtins", "numpy") or isinstance(value.value, library)

    def _is_of_library(self, cls: type, name: str) -> bool:
        """Whether a special method of an Enum is missing, in C, or one that the module enum defines."""
        found = self.class_attribute(cls, name)
        return not isinstance(found, types.FunctionType) or found.__module__ == "enum"

    def is_flag(self, value: Constant, method: str) -> bool:
        """Whether the constant is an enum.Flag that does not define the method itself."""
        return isinstance(value.value, enum.Flag) and self._is_of_library(type(value.value), method)

    def _in_place(self, sign: str, a: Value, b: Value) -> Value | None:
        if isinstance(a, SequenceValue) and a.cls is list and sign in ("+=", "*="):
            if sign == "+=":
                self.note_write(a)
                a.items.extend(self.elements(b))
                return a
            if isinstance(b, Constant) and isinstance(b.value, int):
                self.note_write(a)
                a.items[:] = a.items * b.value
                return a
        if isinstance(a, DequeValue) and sign == "+=":
            _deques.extend(self, a, b)
            return a
        if isinstance(a, SetValue) and isinstance(b, SetValue) and a.cls is set and sign in ("|=", "&=", "-=", "^="):
            self.note_write(a)
            a.items, a.is_ordered = self._set_operation(sign[0], a, b).items, False
            return a
        if isinstance(a, DictValue) and isinstance(b, DictValue) and sign == "|=":
            for key, (k, v) in list(b.items.items()):
                self.write_entry(a, key, k, v)
            return a
        return None

    def _sequences(self, sign: str, a: Value, b: Value) -> Value | None:
        if isinstance(a, SequenceValue) and isinstance(b, SequenceValue) and sign == "+":
            if (a.cls is list) != (b.cls is list):
                return raise_(TypeError, f'can only concatenate {a.cls.__name__} (not "{b.cls.__name__}") to {a.cls.__name__}')
            if a.cls is _C.Size and not all(is_symbolic_operand(self.real(item)) for item in b.items):
                raise Break("sizes and a tuple of something else than ints")
            return SequenceValue([*a.items, *b.items], list if a.cls is list else _sum_type(a.cls))
        for x, y in ((a, b), (b, a)):
            if isinstance(x, SequenceValue) and sign == "*" and isinstance(y, Constant) and isinstance(y.value, int):
                if len(x.items) * y.value > _MAX_TEXT:
                    raise Break("a very long sequence")
                return SequenceValue(x.items * y.value, list if x.cls is list else _sum_type(x.cls))
        if isinstance(a, SetValue) and isinstance(b, SetValue) and sign in "|&-^":
            return self._set_operation(sign, a, b)
        if sign in "|&-^" and any(isinstance(v, DictView) and v.is_set for v in (a, b)):
            if all(isinstance(v, (DictView, DictValue, SetValue, SequenceValue)) for v in (a, b)):
                return self._set_operation(sign, self.set_of(a), self.set_of(b))
        if isinstance(a, DictValue) and isinstance(b, DictValue) and sign == "|" and a.cls is dict and b.cls is dict:
            return DictValue({**a.items, **b.items})
        if isinstance(a, Constant) and isinstance(a.value, str) and sign == "%":
            return fold(operator.mod, a.value, self.python_value(b))
        if isinstance(a, Constant) and isinstance(a.value, type) and sign == "|":
            raise Break("a union of types")
        return None

    def _set_operation(self, sign: str, a: SetValue, b: SetValue) -> SetValue:
        if sign == "|":
            items = {**a.items, **{k: v for k, v in b.items.items() if k not in a.items}}
        elif sign == "&":
            items = {k: v for k, v in a.items.items() if k in b.items}
        else:
            items = {k: v for k, v in a.items.items() if k not in b.items}
            if sign == "^":
                items.update({k: v for k, v in b.items.items() if k not in a.items})
        return SetValue(items, a.cls, is_ordered=len(items) < 2 and sign in "&-")

    def _by_methods(self, a: Value, b: Value, in_place: str | None, name: str) -> Value | None:
        attempts = [(a, f"__{name}__", b)]
        if in_place:
            attempts.insert(0, (a, in_place, b))
        reflected = (b, f"__r{name}__", a)
        if isinstance(b, ObjectValue) and isinstance(a, ObjectValue) and b.cls is not a.cls and issubclass(b.cls, a.cls):
            attempts.insert(0, reflected)
        else:
            attempts.append(reflected)
        for x, method, y in attempts:
            result = self.call_method_named(x, method, [y])
            if result is not None and not self.is_not_implemented(result):
                return result
        if isinstance(a, ObjectValue) or isinstance(b, ObjectValue):
            raise Break("operands without the operator")  # the instruction raises its message
        return None

    def is_not_implemented(self, value: Value) -> bool:
        """Whether a special method has returned NotImplemented."""
        value = self.real(value)
        return isinstance(value, Constant) and value.value is NotImplemented

    def unary(self, opcode: str, a: Value) -> Value:
        """-a, +a and ~a."""
        a = self.real(a)
        method, function = UNARY[opcode]
        a = self.as_number(a)
        if is_item(a) and opcode in ("UNARY_NEGATIVE", "UNARY_POSITIVE"):
            return self.float_of_items("neg", a) if opcode == "UNARY_NEGATIVE" else a
        if isinstance(a, RunTimeNumber) and a.cls is not bool and opcode in ("UNARY_NEGATIVE", "UNARY_POSITIVE"):
            return self.computed_at_run_time("(-{})", operator.neg, a) if opcode == "UNARY_NEGATIVE" else a
        if isinstance(a, SymbolValue) and opcode != "UNARY_INVERT":
            return self.operation("neg", a) if opcode == "UNARY_NEGATIVE" else a
        if isinstance(a, ComputedFloat) and opcode != "UNARY_INVERT":
            return self.computed_float("(-{})", operator.neg, a) if opcode == "UNARY_NEGATIVE" else a
        a = self.plain(a)
        if isinstance(a, Constant) and self.is_folded(a, method):
            return fold(function, a.value)
        if isinstance(a, TensorValue):
            return self.call_in_graph("call_function", function, [a])
        result = self.call_method_named(a, method, [])
        if result is None:
            raise Break(f"{method} of a {kind(a)}")
        return result

    def truth(self, value: Value) -> bool:
        """bool(value)"""
        value = self.real(value)
        if type(value) is Constant and type(value.value) is bool:
            return value.value
        value = self.as_number(value)
        if isinstance(value, SymbolValue) and value.is_unbacked:
            value = ConditionValue("!=", value, Constant(0))
        if isinstance(value, ConditionValue):
            return self.truth_of_condition(value)
        if isinstance(value, SymbolValue):
            return bool(value.example)
        if isinstance(value, FloatValue):
            value = self.plain(value)
        if isinstance(value, Constant):
            if isinstance(value.value, type):
                if type(value.value) is enum.EnumMeta or all(lookup(type(value.value), n) is MISSING for n in ("__bool__", "__len__")):
                    return True
                raise Break("a metaclass with __bool__ or __len__")
            if self.is_folded(value, "__bool__", "__len__"):
                return bool(value.value)
            if callable(value.value):
                return True
        if isinstance(value, (SequenceValue, DictValue, SetValue, DequeValue)):
            return len(value.items) > 0
        if isinstance(value, TensorValue):
            if not value.is_unbacked and not unbacked_dims(value) and value.example.numel() > 1:
                raise Break("the truth of a tensor with more than one value, which is ambiguous")
            raise Break("data-dependent control flow: the truth of a tensor")
        if isinstance(value, ObjectValue):
            result = self.call_method_named(value, "__bool__", [])
            if result is not None:
                result = self.real(result)
                if not (isinstance(result, Constant) and isinstance(result.value, bool)) and not isinstance(result, ConditionValue):
                    return raise_(TypeError, f"__bool__ should return bool, returned {result.cls.__name__}")
            if result is None and (entries := self.entries_of(value, "__len__")) is not None:
                return len(entries.items) > 0
            if result is None:
                result = self._checked_length(self.call_method_named(value, "__len__", []))
            if result is None:
                return True
            result = self.real(result)
            if isinstance(result, Constant) and isinstance(result.value, (bool, int)):
                return bool(result.value)
        if isinstance(
            value,
            (FunctionValue, MethodValue, BuiltinMethod, PartialValue, IteratorValue, ExceptionValue, SliceValue, BuiltValue, MatchValue),
        ):
            return True
        raise Break(f"the truth of a {kind(value)}")

    def length(self, value: Value) -> Value:
        """len(value)"""
        value = self.real(value)
        value = self.entries_of(value, "__len__") or value
        if isinstance(value, (SequenceValue, DictValue, SetValue, DequeValue)):
            return Constant(len(value.items))
        if isinstance(value, DictView):
            return Constant(len(value.read()))
        if isinstance(value, Constant) and (isinstance(value.value, (str, bytes, range)) or self.is_flag(value, "__len__")):
            return Constant(len(value.value))
        if isinstance(value, Constant) and type(value.value) is enum.EnumMeta:
            return Constant(len(value.value))
        if isinstance(value, TensorValue):
            self.check_tensor_method(value, "__len__")
            if value.example.dim() == 0:
                return raise_(TypeError, "len() of a 0-d tensor")
            return self.size_at(value, 0)
        result = self._checked_length(self.call_method_named(value, "__len__", []))
        if result is None:
            raise Break(f"the length of a {kind(value)}")
        return result

    def _checked_length(self, result: Value | None) -> Value | None:
        """The result of `__len__()` of a class in Python, unless len() raises."""
        result = result if result is None else self.real(result)
        if isinstance(result, Constant):
            if not isinstance(result.value, int):
                return raise_(TypeError, f"'{result.cls.__name__}' object cannot be interpreted as an integer")
            if result.value < 0:
                return raise_(ValueError, "__len__() should return >= 0")
        return result

    def contains(self, container: Value, item: Value) -> bool:
        """item in container"""
        container, item = self.real(container), self.real(item)
        container = self.entries_of(container, "__contains__") or container
        if isinstance(container, Constant):
            item = self.plain(item)
        if isinstance(container, (DictValue, SetValue)):
            return self.key_of(item) in container.items
        if isinstance(container, DictView):
            container = SequenceValue(container.read(), tuple)
        if isinstance(container, Constant) and isinstance(container.value, (str, bytes, range)) and isinstance(item, Constant):
            return fold(lambda: item.value in container.value).value
        if isinstance(container, Constant) and type(container.value) is enum.EnumMeta and isinstance(item, Constant):
            if isinstance(item.value, enum.Enum):
                return item.value in container.value
        if isinstance(container, Constant) and self.is_flag(container, "__contains__") and isinstance(item, Constant):
            return fold(lambda: item.value in container.value).value
        if isinstance(container, (SequenceValue, DequeValue)):
            return any(self.is_or_equals(x, item) for x in list(container.items))
        result = self.call_method_named(container, "__contains__", [item])
        if result is not None:
            return self.truth(result)
        if isinstance(container, (IteratorValue, ObjectValue)):
            iterator = self.iterate(container)
            while (x := self.next_or_none(iterator)) is not None:
                if self.is_or_equals(x, item):
                    return True
            return False
        raise Break(f"in of a {kind(container)}")

    # -- items

    def entries_of(self, value: Value, method: str) -> Value | None:
        """The contents of an object of a subclass of dict, list, tuple or set which does not define the method; None for other values."""
        if not isinstance(value, ObjectValue) or value.entries is None:
            return None
        found = self.class_attribute(value.cls, method)
        return None if isinstance(found, types.FunctionType) else value.entries

    def entry_of(self, value: ObjectValue, index: Value) -> Value:
        """dict.__getitem__(value, index) of an object of a subclass, which may define __missing__(), and the same of a list or tuple."""
        if isinstance(value.entries, DictValue) and self.key_of(index) not in value.entries.items:
            missing = self.class_attribute(value.cls, "__missing__")
            if isinstance(missing, types.FunctionType):
                return self.call(self.wrap_class_function(missing), [value, index], {})
            if missing is not MISSING:
                raise Break(f"{value.cls.__name__}.__missing__")
        return self.get_item(value.entries, index)

    def get_item(self, value: Value, index: Value) -> Value:
        """value[index]"""
        value, index = self.real(value), self.real(index)
        if self.entries_of(value, "__getitem__") is not None:
            return self.entry_of(value, index)
        if isinstance(value, TensorValue):
            return self.call_in_graph("call_function", operator.getitem, [value, index])
        if isinstance(value, SequenceValue):
            return self._item_of_sequence(value, index)
        if isinstance(value, DequeValue):
            return _deques.get_item(self, value, index)
        if isinstance(value, DictValue):
            key = self.key_of(index)
            if key in value.items:
                return value.items[key][1]
            if value.cls is collections.defaultdict and not (
                isinstance(value.default_factory, Constant) and value.default_factory.value is None
            ):
                made = self.call(value.default_factory, [], {})
                self.write_entry(value, key, index, made)
                return made
            raise Raised(ExceptionValue(KeyError, [index]))
        if isinstance(value, MatchValue):
            return self.call_method(value, "__getitem__", [index], {})
        if isinstance(value, Constant) and isinstance(value.value, (str, bytes, range)):
            return fold(operator.getitem, value.value, self.python_value(index))
        if isinstance(value, Constant) and type(value.value) is enum.EnumMeta:
            return fold(operator.getitem, value.value, self.python_value(index))
        if isinstance(value, Constant) and (type(value.value).__module__ == "typing" or value.value in _GENERIC):
            found = value.value[self.python_value(index)]  # an annotation
            return Constant(found, constant(found))
        if isinstance(value, Constant) and isinstance(value.value, type):
            raise Break("a class with parameters")
        result = self.call_method_named(value, "__getitem__", [index])
        if result is None:
            raise Break(f"an item of a {kind(value)}")
        return result

    def _item_of_sequence(self, value: SequenceValue, index: Value) -> Value:
        index = self.plain(index)
        if isinstance(index, Constant) and isinstance(index.value, (int, slice)):
            at = index.value
        elif isinstance(index, SliceValue):
            at = slice(*(self.index_of(p) for p in index.parts))
        elif isinstance(index, ObjectValue):
            at = self.index_of(index)
        else:
            raise Break(f"an item of a sequence at a {kind(index)}")
        if isinstance(at, slice):
            if isinstance(value, ModuleSlice):
                return ModuleSlice(value.items[at], value.cls)
            cls = value.cls if value.cls in (list, _C.Size) else tuple
            try:
                return SequenceValue(value.items[at], cls)
            except ValueError as e:
                return raise_(ValueError, str(e))
        try:
            return value.items[at]
        except IndexError:
            return raise_(IndexError, f"{'list' if value.cls is list else 'tuple'} index out of range")

    def index_of(self, value: Value) -> Any:
        """An index or None, as Python."""
        value = self.plain(self.real(value))
        if isinstance(value, Constant) and isinstance(value.value, (int, type(None))):
            return value.value
        if isinstance(value, ObjectValue):
            result = self.call_method_named(value, "__index__", [])
            result = result if result is None else self.real(result)
            if isinstance(result, Constant):
                if not isinstance(result.value, int):
                    return raise_(TypeError, f"__index__ returned non-int (type {result.cls.__name__})")
                return result.value
        raise Break(f"a {kind(value)} as an index")

    def set_item(self, value: Value, index: Value, new: Value) -> None:
        """value[index] = new"""
        value, index = self.real(value), self.real(index)
        value = self.entries_of(value, "__setitem__") or value
        if isinstance(value, TensorValue):
            self.call_in_graph("call_function", operator.setitem, [value, index, new])
            return
        if isinstance(value, SequenceValue) and value.cls is list:
            at = self.python_value(index)
            self.note_write(value)
            if isinstance(at, slice):
                items = self.elements(new)
                try:
                    value.items[at] = items
                except ValueError as e:
                    raise_(ValueError, str(e))
                return
            try:
                value.items[at] = new
            except IndexError:
                raise_(IndexError, "list assignment index out of range")
            except TypeError:
                raise Break("an index that is not a number") from None
            return
        if isinstance(value, DictValue):
            self.write_entry(value, self.key_of(index), index, new)
            return
        if isinstance(value, DequeValue):
            return _deques.set_item(self, value, index, new)
        if self.call_method_named(value, "__setitem__", [index, new]) is None:
            raise Break(f"an item of a {kind(value)} is written")

    def write_entry(self, value: DictValue, key: Any, index: Value, new: Value) -> None:
        """Sets an entry of a dict."""
        self.note_write(value)
        old = value.items.get(key)
        value.items[self.stored_key(key)] = (old[0] if old else index, new)
        if value.owner is not None:
            value.owner.attributes[self.python_value(index)] = new
            self.note_write(value.owner)

    def delete_item(self, value: Value, index: Value) -> None:
        """del value[index]"""
        value, index = self.real(value), self.real(index)
        value = self.entries_of(value, "__delitem__") or value
        if isinstance(value, SequenceValue) and value.cls is list:
            at = self.python_value(index)
            self.note_write(value)
            try:
                del value.items[at]
            except IndexError:
                raise_(IndexError, "list assignment index out of range")
            return
        if isinstance(value, DictValue):
            key = self.key_of(index)
            if key not in value.items:
                raise Raised(ExceptionValue(KeyError, [index]))
            self._check_owner(value)
            self.note_write(value)
            value.is_rebuilt = True
            del value.items[key]
            return
        if isinstance(value, DequeValue):
            return _deques.set_item(self, value, index, None)
        if self.call_method_named(value, "__delitem__", [index]) is None:
            raise Break(f"an item of a {kind(value)} is deleted")

    def python_value(self, value: Value) -> Any:
        """The Python object of a value that consists of constants; raises Break if a part is not."""
        value = self.plain(self.real(value))
        if isinstance(value, Constant):
            return value.value
        if isinstance(value, SequenceValue):
            items = [self.python_value(i) for i in value.items]
            if value.cls is list:
                return items
            if value.cls in (tuple, _C.Size):
                return value.cls(items)
            return value.cls(*items)
        if isinstance(value, SliceValue):
            return slice(*(self.python_value(p) for p in value.parts))
        if isinstance(value, DictValue) and value.cls is dict:
            return {self.python_value(k): self.python_value(v) for k, v in value.items.values()}
        if isinstance(value, SetValue):
            return value.cls(self.python_value(v) for v in value.items.values())
        raise Break(f"a {kind(value)} where a constant is expected")


def _sum_type(a: type) -> type:
    return _C.Size if a is _C.Size else tuple
