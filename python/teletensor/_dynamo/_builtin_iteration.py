"""Iterators and functions of iterables: zip(), map(), sum(), sorted()."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

from .. import _C
from . import _deques
from ._attributes import raise_
from ._handlers import handlers, handles
from ._iteration import stop
from ._symbols import is_symbolic_operand
from ._unbacked import is_item
from ._values import (
    Break,
    Constant,
    DequeValue,
    DictValue,
    IteratorValue,
    ObjectValue,
    SequenceValue,
    SetValue,
    SymbolValue,
    TensorValue,
    Value,
    kind,
)


@handles(iter)
def _iter(ex, args, kwargs):
    if len(args) == 2 and not kwargs:

        def advance():
            if result.is_finished:
                return raise_(StopIteration)
            found = ex.call(args[0], [], {})
            if ex.is_or_equals(found, args[1]):
                result.is_finished = True
                return raise_(StopIteration)
            return found

        result = IteratorValue(advance, None, type(iter(int, 1)))
        result.remake = lambda code: f"{code.constant(iter)}({code.values(args)})"
        return result
    if len(args) != 1:
        raise Break("iter() gets wrong arguments")
    return ex.iterate(args[0])


@handles(next)
def _next(ex, args, kwargs):
    if len(args) == 1:
        return ex.advance(args[0])
    found = ex.next_or_none(args[0])
    return args[1] if found is None else found


def _quantifier(stops_at: bool) -> Callable:
    def handler(ex, args, kwargs):
        iterator = ex.iterate(args[0])
        while (item := ex.next_or_none(iterator)) is not None:
            if ex.truth(item) == stops_at:
                return Constant(stops_at)
        return Constant(not stops_at)

    return handler


handlers[any], handlers[all] = _quantifier(True), _quantifier(False)


@handles(sum)
def _sum(ex, args, kwargs):
    start = args[1] if len(args) > 1 else kwargs.get("start", Constant(0))
    if isinstance(ex.real(start), Constant) and isinstance(ex.real(start).value, (str, bytes)):
        raise Break("sum() of strings")  # raises TypeError
    for item in ex.elements(args[0]):
        start = ex.binary("+", start, item)
    return start


def _extreme_of_tensors(ex: Any, sign: str, best: Value, item: Value) -> Value:
    """`item if item < best else best` for tensors without dimensions and numbers: a tensor, as the outcome is not known."""
    if not isinstance(best, TensorValue) and not isinstance(item, TensorValue):
        return item if ex.truth(ex.compare(sign, item, best)) else best
    for value in (best, item):
        is_number = isinstance(value, Constant) and isinstance(value.value, (int, float)) or isinstance(value, SymbolValue)
        if not is_number and not (isinstance(value, TensorValue) and value.example.dim() == 0):
            raise Break(f"data-dependent control flow: {'min' if sign == '<' else 'max'}() of a {kind(value)} with dimensions")
    return ex.call_in_graph("call_function", _C.torch.where, [ex.compare(sign, item, best), item, best])


def _extreme(sign: str) -> Callable:
    def handler(ex, args, kwargs):
        key, default = kwargs.get("key"), kwargs.get("default")
        if set(kwargs) - {"key", "default"}:
            raise Break("min() or max() with other keyword arguments")
        if not args:
            return raise_(TypeError, f"{'min' if sign == '<' else 'max'} expected at least 1 argument, got 0")
        items = ex.elements(args[0]) if len(args) == 1 else list(args)
        if not items:
            return default if default is not None else raise_(ValueError, f"{'min' if sign == '<' else 'max'}() arg is an empty sequence")
        has_key = key is not None and not (isinstance(ex.real(key), Constant) and ex.real(key).value is None)
        real = [ex.as_number(ex.real(i)) for i in items]
        if not has_key and all(map(is_symbolic_operand, real)):
            return functools.reduce(functools.partial(ex.operation, "min" if sign == "<" else "max"), real)
        if not has_key and any(map(is_item, real)) and all(is_item(v) or isinstance(v, Constant) and type(v.value) is float for v in real):
            return functools.reduce(functools.partial(ex.float_of_items, "min" if sign == "<" else "max"), real)
        if not has_key and any(isinstance(i, TensorValue) for i in real):
            return functools.reduce(functools.partial(_extreme_of_tensors, ex, sign), real)
        best = items[0]
        best_key = ex.call(key, [best], {}) if has_key else best
        for item in items[1:]:
            item_key = ex.call(key, [item], {}) if has_key else item
            if ex.truth(ex.compare(sign, item_key, best_key)):
                best, best_key = item, item_key
        return best

    return handler


handlers[min], handlers[max] = _extreme("<"), _extreme(">")


@handles(sorted)
def _sorted(ex, args, kwargs):
    value = ex.real(args[0])
    value = ex.entries_of(value, "__iter__") or value
    plain = isinstance(value, SetValue) and not kwargs  # elements that differ have one order
    result = SequenceValue(ex.unordered(value) if plain else ex.elements(value), list)
    sort(ex, result, kwargs)
    return result


def sort(ex: Any, value: SequenceValue, kwargs: dict[str, Value]) -> None:
    """list.sort()"""
    key, reverse = kwargs.get("key"), kwargs.get("reverse")
    if set(kwargs) - {"key", "reverse"}:
        raise Break("sort() with other keyword arguments")
    has_key = key is not None and not (isinstance(ex.real(key), Constant) and ex.real(key).value is None)
    is_reversed = reverse is not None and ex.truth(reverse)
    items = list(value.items)
    value.items.clear()  # as list.sort() does meanwhile
    try:
        keys = [_Ordered(ex, ex.call(key, [i], {}) if has_key else i) for i in items]
        items = [items[i] for i in sorted(range(len(keys)), key=keys.__getitem__, reverse=is_reversed)]
        if value.items:
            raise Break("a list that changes while it is sorted")
    finally:
        value.items[:] = items


class _Ordered:
    """A key of list.sort(), compared as the function would."""

    def __init__(self, ex: Any, value: Value) -> None:
        self.ex, self.value = ex, value

    def __lt__(self, other: _Ordered) -> bool:
        return self.ex.truth(self.ex.compare("<", self.value, other.value))


def _reversed_list(value: SequenceValue) -> IteratorValue:
    """An iterator from a list's end, which may change meanwhile."""
    position = len(value.items) - 1

    def advance() -> Value:
        nonlocal position
        if result.is_finished or not 0 <= position < len(value.items):
            result.is_finished = True
            return stop()
        position -= 1
        return value.items[position + 1]

    result = IteratorValue(advance, lambda: [] if result.is_finished else value.items[: position + 1][::-1], type(reversed([])))
    result.remake = lambda code: f"reversed_list({code.value(value)}, {position})"
    return result


@handles(reversed)
def _reversed(ex, args, kwargs):
    value = ex.real(args[0])
    if isinstance(value, SequenceValue) and value.cls is list:
        return _reversed_list(value)
    if isinstance(value, SequenceValue):
        return ex.over(value.items[::-1])
    if isinstance(value, DequeValue):
        return _deques.iterate(ex, value, True)
    if isinstance(value, DictValue):
        return ex.over([k for k, _ in value.items.values()][::-1])
    if isinstance(value, Constant) and isinstance(value.value, (range, str)):
        return ex.over([Constant(c) for c in reversed(value.value)])
    found = ex.call_method_named(value, "__reversed__", [])
    if found is None:
        if isinstance(value, ObjectValue) and all(ex.has_python_method(value.cls, name) for name in ("__len__", "__getitem__")):
            return ex.call(ex.wrap_class_function(_items_from_end), [value], {})
        raise Break(f"reversed() of a {kind(value)}")
    return found


def _items_from_end(sequence):
    for i in range(len(sequence) - 1, -1, -1):
        yield sequence[i]


@handles(zip)
def _zip(ex, args, kwargs):
    strict = "strict" in kwargs and ex.truth(kwargs["strict"])
    iterators = [ex.iterate(a) for a in args]

    def advance():
        items = []
        for position, iterator in enumerate(iterators):
            item = ex.next_or_none(iterator)
            if item is None:
                if strict and (position or any(ex.next_or_none(i) is not None for i in iterators[1:])):
                    raise Break("zip() of arguments of different lengths")
                raise_(StopIteration)
            items.append(item)
        if not items:
            raise_(StopIteration)
        return SequenceValue(items, tuple)

    result = IteratorValue(advance, None, zip)
    result.remake = lambda code: f"zip({code.values(iterators)}{', strict=True' if strict and iterators else ''})"
    return result


@handles(enumerate)
def _enumerate(ex, args, kwargs):
    start = ex.python_value(args[1] if len(args) > 1 else kwargs.get("start", Constant(0)))
    iterator = ex.iterate(args[0])
    count = [start]

    def advance():
        item = ex.advance(iterator)
        count[0] += 1
        return SequenceValue([Constant(count[0] - 1), item], tuple)

    result = IteratorValue(advance, None, enumerate)
    result.remake = lambda code: f"enumerate({code.value(iterator)}, {count[0]})"
    return result


@handles(map)
def _map(ex, args, kwargs):
    iterators = [ex.iterate(a) for a in args[1:]]

    def advance():
        items = [ex.advance(i) for i in iterators]
        return ex.call(args[0], items, {})

    return IteratorValue(advance, None, map)


@handles(filter)
def _filter(ex, args, kwargs):
    iterator = ex.iterate(args[1])
    is_none = isinstance(ex.real(args[0]), Constant) and ex.real(args[0]).value is None

    def advance():
        while True:
            item = ex.advance(iterator)
            if ex.truth(item if is_none else ex.call(args[0], [item], {})):
                return item

    return IteratorValue(advance, None, filter)


@handles(itertools.chain)
def _chain(ex, args, kwargs):
    iterables = list(args)
    current: list[Value] = []

    def advance():
        while True:
            if not current:
                if not iterables:
                    raise_(StopIteration)
                current.append(ex.iterate(iterables.pop(0)))
            item = ex.next_or_none(current[0])
            if item is not None:
                return item
            current.clear()

    return IteratorValue(advance, None, itertools.chain)


@handles(itertools.islice)
def _islice(ex, args, kwargs):
    limits = [ex.python_value(a) for a in args[1:]]
    iterator = ex.iterate(args[0])
    wanted = iter(range(*slice(*limits).indices(1 << 30)))
    position = [0]

    def advance():
        try:
            target = next(wanted)
        except StopIteration:
            raise_(StopIteration)
        while True:
            item = ex.advance(iterator)
            position[0] += 1
            if position[0] - 1 == target:
                return item

    return IteratorValue(advance, None, itertools.islice)


@handles(functools.reduce)
def _reduce(ex, args, kwargs):
    items = ex.elements(args[1])
    if len(args) > 2:
        items.insert(0, args[2])
    if not items:
        return raise_(TypeError, "reduce() of empty iterable with no initial value")
    result = items[0]
    for item in items[1:]:
        result = ex.call(args[0], [result, item], {})
    return result
