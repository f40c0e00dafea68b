"""Iteration: iterators over values, and generators."""

from __future__ import annotations

import operator
import types
from typing import Any

from . import _deques
from ._attributes import MISSING, raise_
from ._codegen import message_of_change
from ._source import CALL, CHECK_EQUAL, LIST_ITEM, TUPLE_ITEM
from ._values import (
    Break,
    Constant,
    DequeValue,
    DictValue,
    DictView,
    ExceptionValue,
    GeneratorValue,
    IteratorValue,
    ModuleSlice,
    NeedsPlainRun,
    ObjectValue,
    Raised,
    SequenceValue,
    SetValue,
    TensorValue,
    Value,
    kind,
)  # fmt: skip

_MAX_STEPS = 100_000
_SequenceIterator = type(iter(type("", (), {"__getitem__": None})()))


def _by_index(sequence):
    """The iterator of an object that has `__getitem__` alone."""
    index = 0
    while True:
        try:
            element = sequence[index]
        except (IndexError, StopIteration):
            return
        yield element
        index += 1


def stop(value: Value | None = None) -> Any:
    """Raises StopIteration in the function that is executed."""
    raise Raised(ExceptionValue(StopIteration, [] if value is None else [value]))


class Iteration:
    """A part of Executor."""

    def over(self, items: list[Value], cls: type | None = None, live: Any = None) -> IteratorValue:
        """An iterator over a list of values, which may grow meanwhile. `live` is the list value."""
        position = [0]

        def advance() -> Value:
            if result.is_finished or position[0] >= len(items):
                result.is_finished = True
                return stop()
            position[0] += 1
            return items[position[0] - 1]

        result = IteratorValue(advance, lambda: [] if result.is_finished else items[position[0] :], cls or type(iter([])))
        result.live, result.position = live, position
        return result

    def iterate(self, value: Value) -> Value:
        """iter(value)"""
        value = self.plain(self.real(value))
        value = self.entries_of(value, "__iter__") or value
        if isinstance(value, SequenceValue):
            cls = type(iter([])) if value.cls is list else type(iter(()))
            if value.cls not in (list, tuple) and not isinstance(value, ModuleSlice) and "__iter__" in vars(value.cls):
                raise Break(f"{value.cls.__name__}.__iter__")
            return self.over(value.items, cls, value if value.cls is list else None)
        if isinstance(value, Constant) and isinstance(value.value, (str, bytes, range)):
            if isinstance(value.value, range) and len(value.value) > _MAX_STEPS:
                raise Break("a range of many numbers")
            return self.over([Constant(c) for c in value.value], type(iter(value.value)))
        if isinstance(value, DictValue):
            return self.over_changing(value, DictView(value, "keys"))
        if isinstance(value, DictView):
            return self.over_changing(value.of, value)
        if isinstance(value, SetValue) and len(value.items) > 1 and value.source is not None and id(value) not in self.written:
            # The elements in their order, which equal sets need not share.
            elements = value.source.attribute("__reduce__").then(CALL).then(TUPLE_ITEM, None, 1).then(TUPLE_ITEM, None, 0)
            for i, item in enumerate(value.items.values()):
                self.guards.check(CHECK_EQUAL, elements.then(LIST_ITEM, None, i), item.value)
            return self.over_changing(value)
        if isinstance(value, SetValue) and len(value.items) > 1:
            raise NeedsPlainRun("the order of a set")
        if isinstance(value, SetValue):
            return self.over_changing(value)
        if isinstance(value, (IteratorValue, GeneratorValue)):
            return value
        if isinstance(value, DequeValue):
            return _deques.iterate(self, value)
        if isinstance(value, TensorValue):
            self.check_tensor_method(value, "__iter__")
            if value.example.dim() == 0:
                return raise_(TypeError, "iteration over a 0-d tensor")
            return self.over(self.call_in_graph("call_method", "unbind", [value, Constant(0)]).items)
        if isinstance(value, ObjectValue):
            found = self.class_attribute(value.cls, "__iter__")
            if isinstance(found, types.FunctionType):
                return self.real(self.call(self.wrap_class_function(found), [value], {}))
            if found is MISSING:
                if self.class_attribute(value.cls, "__getitem__") is MISSING:
                    return raise_(TypeError, f"'{value.cls.__name__}' object is not iterable")
                generator = self.real(self.call(self.wrap_class_function(_by_index), [value], {}))
                return IteratorValue(lambda: self.advance(generator), None, _SequenceIterator)
        if isinstance(value, Constant) and isinstance(value.value, (int, float, complex, type(None))):
            return raise_(TypeError, f"'{type(value.value).__name__}' object is not iterable")
        if isinstance(value, Constant) and isinstance(value.value, type) and hasattr(value.value, "__members__"):
            return self.over([Constant(m) for m in value.value])
        if isinstance(value, Constant) and self.is_flag(value, "__iter__"):
            return self.over([Constant(m) for m in value.value], type(iter([])))
        raise Break(f"iteration over a {kind(value)}")

    def over_changing(self, value: DictValue | SetValue, view: DictView | None = None) -> IteratorValue:
        """An iterator over a set, or a view of a dict, which must not change its size meanwhile."""
        keys, size, position = list(value.items), len(value.items), 0

        def check_keys() -> None:
            if not all(map(operator.is_, keys, value.items)):
                raise Break("other keys of a dict or set during iteration")

        def advance() -> Value:
            nonlocal size, position
            if result.is_finished:
                return stop()
            if len(value.items) != size:
                size = -1  # all further calls raise
                return raise_(RuntimeError, message_of_change(value.cls))
            check_keys()
            if position == size:
                result.is_finished = True
                return stop()
            position += 1
            return element(keys[position - 1])

        def element(key: Any) -> Value:
            return value.items[key] if view is None else view.element(key)

        def rest() -> list[Value]:
            return [] if result.is_finished else [element(key) for key in keys[position:]]

        def remake(code: Any) -> str:
            names: list[Value] = []
            if len(value.items) == size:
                check_keys()
                names = [value.items[key] if view is None else value.items[key][0] for key in keys]
            method = None if view is None else view.method
            return f"changing_iterator({code.value(value)}, {method!r}, {size}, [{code.values(names)}], {position})"

        result = IteratorValue(advance, rest)
        result.remake = remake
        return result

    def advance(self, value: Value) -> Value:
        """next(value); raises Raised(StopIteration) at the end."""
        value = self.real(value)
        self.count_step()
        if isinstance(value, IteratorValue):
            return value.advance()
        if isinstance(value, GeneratorValue):
            return self.resume_generator(value, Constant(None))
        if isinstance(value, ObjectValue):
            found = self.class_attribute(value.cls, "__next__")
            if isinstance(found, types.FunctionType):
                return self.call(self.wrap_class_function(found), [value], {})
        raise Break(f"next() of a {kind(value)}")

    def next_or_none(self, value: Value) -> Value | None:
        """The next value; None at the end."""
        try:
            return self.advance(value)
        except Raised as e:
            if e.value.cls is StopIteration:
                return None
            raise

    def elements(self, value: Value) -> list[Value]:
        """list(value)"""
        value = self.real(value)
        if isinstance(value, SequenceValue) and value.cls in (list, tuple):
            return list(value.items)
        iterator = self.iterate(value)
        found = []
        while (item := self.next_or_none(iterator)) is not None:
            found.append(item)
        return found

    def unordered(self, value: Value) -> list[Value]:
        """The elements, where their order has no effect."""
        value = self.real(value)
        return list(value.items.values()) if isinstance(value, SetValue) else self.elements(value)

    def set_of(self, value: Value, cls: type = set) -> SetValue:
        """A set or frozenset of the elements."""
        items: dict[Any, Value] = {}
        for item in self.unordered(value):
            items.setdefault(self.key_of(item), item)
        return SetValue(items, cls, is_ordered=not isinstance(self.real(value), (SetValue, DictValue, ObjectValue)))

    # -- generators

    def resume_generator(self, value: GeneratorValue, sent: Value, exception: Value | None = None) -> Value:
        """Continues a generator until it yields; raises Raised(StopIteration) with its result at its end."""
        if value.is_running:
            return raise_(ValueError, "generator already executing")
        if value.is_finished:
            if exception is not None:
                raise Raised(exception)
            return stop()
        if not value.frame.is_started:
            if exception is not None:
                value.is_finished = True
                raise Raised(exception)
            if not (isinstance(sent, Constant) and sent.value is None):
                return raise_(TypeError, "can't send non-None value to a just-started generator")
        if self.depth >= 40:
            raise Break("too many nested calls")
        value.is_running = True
        self.depth += 1
        try:
            has_yielded, result = value.frame.resume(sent, exception)
        except Raised as e:
            value.is_finished = True
            if e.value.cls is StopIteration:
                raise Break("a generator that raises StopIteration") from None
            raise
        finally:
            value.is_running = False
            self.depth -= 1
        if has_yielded:
            return result
        value.is_finished = True
        return stop(None if isinstance(result, Constant) and result.value is None else result)

    def call_generator_method(self, value: GeneratorValue, name: str, args: list[Value]) -> Value:
        """A call of send(), throw() or close()."""
        if name == "__iter__":
            return value
        if name == "__next__":
            return self.resume_generator(value, Constant(None))
        if name == "send" and len(args) == 1:
            return self.resume_generator(value, args[0])
        if name == "throw" and args:
            exception = self.real(args[1] if len(args) > 1 and not self._is_none(args[1]) else args[0])
            if isinstance(exception, Constant) and isinstance(exception.value, type):
                exception = self.create(exception.value, [], {})
            if not isinstance(exception, ExceptionValue):
                raise Break("throw() of an existing exception")
            return self.resume_generator(value, Constant(None), exception)
        if name == "close" and not args:
            if value.is_finished or not value.frame.is_started:
                value.is_finished = True
                return Constant(None)
            try:
                self.resume_generator(value, Constant(None), ExceptionValue(GeneratorExit, []))
            except Raised as e:
                if issubclass(e.value.cls, (GeneratorExit, StopIteration)):
                    return Constant(None)
                raise
            return raise_(RuntimeError, "generator ignored GeneratorExit")
        raise Break(f"generator.{name}")

    def _is_none(self, value: Value) -> bool:
        value = self.real(value)
        return isinstance(value, Constant) and value.value is None
