"""Keys of dicts and sets, with `__hash__` and `__eq__` of classes in Python."""

from __future__ import annotations

import operator
import types
from typing import Any

from ._attributes import MISSING, raise_
from ._values import (
    Break,
    Constant,
    FunctionValue,
    IdValue,
    ObjectValue,
    SequenceValue,
    SymbolValue,
    TensorValue,
    Value,
    kind,
)
from ._wrap import EQUAL_TYPES


class _ById:
    """The key of an object that equals itself only."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ById) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


class _ByMethods:
    """The key of an object whose class defines `__hash__`, and perhaps `__eq__`, which the capture executes."""

    __slots__ = ("ex", "hash", "stored", "value")

    def __init__(self, ex: Any, value: Value, hash_: int) -> None:
        self.ex, self.value, self.hash = ex, value, hash_
        self.stored: _ByMethods | None = None  # the key in a dict that was found to be equal to this one

    def __eq__(self, other: object) -> bool:
        if isinstance(other, _ByMethods):
            same = self.value is other.value or self.ex.truth(self.ex.compare("==", self.value, other.value))
            if same:
                other.stored = self
            return same
        if type(other) in EQUAL_TYPES:
            return self.ex.truth(self.ex.compare("==", self.value, Constant(other)))
        raise Break(f"a {self.value.cls.__name__} and another key of the same hash")

    def __hash__(self) -> int:
        return self.hash


class _OfHash:
    """Has a given hash."""

    def __init__(self, hash_: int) -> None:
        self.hash = hash_

    def __hash__(self) -> int:
        return self.hash


class Keys:
    """A part of Executor."""

    @staticmethod
    def stored_key(key: Any) -> Any:
        """The key that a dict has, after it has found an entry of an equal one: with it, `__eq__` is not called again."""
        return key.stored or key if isinstance(key, _ByMethods) else key

    def key_of(self, value: Value) -> Any:
        """Returns the key under which a value is stored in `items`."""
        value = self.real(value)
        if isinstance(value, (Constant, SymbolValue)):
            return value.value
        if isinstance(value, SequenceValue) and issubclass(value.cls, tuple):
            return (tuple, *map(self.key_of, value.items))
        if isinstance(value, (TensorValue, FunctionValue)):
            self.note_identity(value)
            return _ById(value)
        if isinstance(value, IdValue):
            return (IdValue, _ById(value.of))
        if isinstance(value, ObjectValue):
            methods = [self.class_attribute(value.cls, name) for name in ("__hash__", "__eq__")]
            if methods == [object.__hash__, object.__eq__]:
                self.note_identity(value)
                return _ById(value)
            if value.entries is None:
                return _ByMethods(self, value, self.hash_of(value))
        raise Break(f"a {kind(value)} as a key")

    def note_hash(self, obj: Any) -> None:
        """Notes whether other processes have another hash of a constant: Python salts those of texts, others are addresses."""
        if type(obj) not in (bool, int, float, complex) or obj != obj:
            self.of_this_process = "a hash that differs between processes"

    def note_format(self, text: Any) -> None:
        """Notes a format, or a text with formats, that depends on the locale, such as "n"."""
        if isinstance(text, str) and (text.endswith("n") or "n}" in text):
            self.of_this_process = "a format that depends on the locale"

    def hash_of(self, value: Value) -> int:
        """hash(value), unless it depends on the address of an object."""
        value = self.plain(self.real(value))
        if isinstance(value, Constant) and type(value.value) in EQUAL_TYPES:
            self.note_hash(value.value)
            return hash(value.value)
        if isinstance(value, SequenceValue) and value.cls is tuple:
            return hash(tuple(_OfHash(self.hash_of(item)) for item in value.items))
        if isinstance(value, ObjectValue):
            found = self.class_attribute(value.cls, "__hash__")
            if found is None:
                return raise_(TypeError, f"unhashable type: '{value.cls.__name__}'")
            if found is not MISSING and isinstance(found, types.FunctionType):
                result = self.real(self.call(self.wrap_class_function(found), [value], {}))
                if isinstance(result, Constant) and isinstance(result.value, int):
                    return hash(_OfHash(operator.index(result.value)))
        raise Break(f"hash() of a {kind(value)}")
