"""collections.deque: its methods."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

from ._attributes import raise_
from ._handlers import constructors
from ._values import Break, Constant, DequeValue, IteratorValue, Value


def _noted(ex: Any, value: DequeValue) -> list[Value]:
    """The elements, which are about to be changed."""
    ex.note_write(value)
    value.changes += 1
    return value.items


def _append(ex: Any, value: DequeValue, item: Value) -> None:
    items = _noted(ex, value)
    items.append(item)
    if value.maxlen is not None and len(items) > value.maxlen:
        del items[0]


def _append_left(ex: Any, value: DequeValue, item: Value) -> None:
    items = _noted(ex, value)
    items.insert(0, item)
    if value.maxlen is not None and len(items) > value.maxlen:
        del items[-1]


def extend(ex: Any, value: DequeValue, iterable: Value) -> None:
    """deque.extend()"""
    _extend(ex, value, iterable, _append)


def _extend(ex: Any, value: DequeValue, iterable: Value, append: Callable) -> None:
    if ex.real(iterable) is value:
        iterator: Value = ex.over(list(value.items))
    else:
        iterator = ex.iterate(iterable)
    while (item := ex.next_or_none(iterator)) is not None:
        append(ex, value, item)


def _pop(ex: Any, value: DequeValue, at: int = -1) -> Value:
    if not value.items:
        return raise_(IndexError, "pop from an empty deque")
    return _noted(ex, value).pop(at)


def _rotate(ex: Any, value: DequeValue, steps: Value | None = None) -> None:
    n = 1 if steps is None else ex.python_value(steps)
    if type(n) is not int:
        raise Break("deque.rotate() by something else than an int")
    items = _noted(ex, value)
    if items:
        n %= len(items)
        items[:] = items[-n:] + items[:-n] if n else items


def _insert(ex: Any, value: DequeValue, at: Value, item: Value) -> None:
    if value.maxlen is not None and len(value.items) >= value.maxlen:
        raise_(IndexError, "deque already at its maximum size")
    index = ex.index_of(at)
    _noted(ex, value).insert(index, item)


def _remove(ex: Any, value: DequeValue, item: Value) -> None:
    for i, found in enumerate(value.items):
        if ex.is_or_equals(found, item):
            del _noted(ex, value)[i]
            return
    raise Break("remove() of a value that is missing")


def _clear(ex: Any, value: DequeValue) -> None:
    _noted(ex, value).clear()


def _reverse(ex: Any, value: DequeValue) -> None:
    _noted(ex, value).reverse()


def _count(ex: Any, value: DequeValue, item: Value) -> Value:
    return Constant(sum(ex.is_or_equals(found, item) for found in list(value.items)))


def _index(ex: Any, value: DequeValue, item: Value) -> Value:
    for i, found in enumerate(value.items):
        if ex.is_or_equals(found, item):
            return Constant(i)
    raise Break("index() of a value that is missing")


def copied(ex: Any, value: DequeValue) -> DequeValue:
    """deque.copy()"""
    return DequeValue(list(value.items), value.maxlen)


METHODS: dict[str, Callable] = {
    "append": _append, "appendleft": _append_left, "extend": extend, "pop": _pop, "popleft": lambda ex, value: _pop(ex, value, 0),
    "extendleft": lambda ex, value, iterable: _extend(ex, value, iterable, _append_left), "rotate": _rotate, "insert": _insert,
    "remove": _remove, "clear": _clear, "reverse": _reverse, "count": _count, "index": _index, "copy": copied, "__copy__": copied,
}  # fmt: skip
_PARAMETERS = {"rotate": (0, 1), "insert": (2, 2), **dict.fromkeys(("pop", "popleft", "clear", "reverse", "copy", "__copy__"), (0, 0))}


def call_method(ex: Any, value: DequeValue, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """A method of a deque."""
    least, most = _PARAMETERS.get(name, (1, 1))
    if name not in METHODS or kwargs or not least <= len(args) <= most:
        raise Break(f"deque.{name}()")
    return METHODS[name](ex, value, *args) or Constant(None)


def iterate(ex: Any, value: DequeValue, is_reversed: bool = False) -> IteratorValue:
    """An iterator, which a change of the deque makes invalid."""
    changes = value.changes
    inner = ex.over(value.items[::-1] if is_reversed else list(value.items))

    def advance() -> Value:
        if value.changes != changes:
            raise Break("a deque that changes during iteration")
        return inner.advance()

    return IteratorValue(advance)


def get_item(ex: Any, value: DequeValue, index: Value) -> Value:
    """value[index]"""
    at = ex.index_of(index)
    if not isinstance(at, int):
        raise Break("an item of a deque at something else than an int")
    if not -len(value.items) <= at < len(value.items):
        return raise_(IndexError, "deque index out of range")
    return value.items[at]


def set_item(ex: Any, value: DequeValue, index: Value, new: Value | None) -> None:
    """value[index] = new; None deletes."""
    at = ex.index_of(index)
    if not isinstance(at, int):
        raise Break("an item of a deque at something else than an int")
    if not -len(value.items) <= at < len(value.items):
        raise_(IndexError, "deque index out of range")
    if new is None:
        del _noted(ex, value)[at]
    else:
        _noted(ex, value)[at] = new


def _make(ex: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    given = dict(zip(("iterable", "maxlen"), args))
    if len(args) > 2 or given.keys() & kwargs.keys() or kwargs.keys() - {"iterable", "maxlen"}:
        raise Break("deque() gets wrong arguments")
    given.update(kwargs)
    maxlen = ex.python_value(given["maxlen"]) if "maxlen" in given else None
    if maxlen is not None and (type(maxlen) is not int or maxlen < 0):
        raise Break("deque() gets a wrong maxlen")
    value = DequeValue([], maxlen)
    if "iterable" in given:
        extend(ex, value, given["iterable"])
    return value


constructors[collections.deque] = _make
