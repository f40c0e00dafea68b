"""Objects in C that can be called: operator.itemgetter(), attrgetter() and methodcaller(), functools.cmp_to_key()."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from ._handlers import constructors, handles
from ._values import Break, BuiltValue, Constant, SequenceValue, Value


def _one(name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if len(args) != 1 or kwargs:
        raise Break(f"a call of an {name} with wrong arguments")
    return args[0]


def _gathered(found: list[Value]) -> Value:
    return found[0] if len(found) == 1 else SequenceValue(found, tuple)


def _get_items(ex: Any, made: BuiltValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    value = _one("itemgetter", args, kwargs)
    return _gathered([ex.get_item(value, key) for key in made.args])


def _get_attributes(ex: Any, made: BuiltValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    value = _one("attrgetter", args, kwargs)
    names = [ex.python_value(name).split(".") for name in made.args]
    return _gathered([functools.reduce(ex.get_attribute, path, value) for path in names])


def _call_method(ex: Any, made: BuiltValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    value = _one("methodcaller", args, kwargs)
    return ex.call(ex.get_attribute(value, ex.python_value(made.args[0])), made.args[1:], made.kwargs)


KINDS_OF_GETTERS: dict[type, Callable] = {
    operator.itemgetter: _get_items, operator.attrgetter: _get_attributes, operator.methodcaller: _call_method,
}  # fmt: skip


def _making(cls: type) -> Callable:
    def handler(ex, args, kwargs):
        has_names = cls is operator.itemgetter or all(
            isinstance(a, Constant) and type(a.value) is str for a in map(ex.real, args if cls is operator.attrgetter else args[:1])
        )
        if not args or not has_names or kwargs and cls is not operator.methodcaller:
            raise Break(f"{cls.__name__}() gets wrong arguments")
        return BuiltValue(cls, list(args), dict(kwargs), KINDS_OF_GETTERS[cls])

    return handler


for _cls in KINDS_OF_GETTERS:
    constructors[_cls] = _making(_cls)


class Compared:
    """The result of functools.cmp_to_key(function)(obj), in Python."""

    __slots__ = ("function", "obj")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, function: Any, obj: Any) -> None:
        self.function, self.obj = function, obj

    def __lt__(self, other: Compared) -> bool:
        return self.function(self.obj, other.obj) < 0

    def __gt__(self, other: Compared) -> bool:
        return self.function(self.obj, other.obj) > 0

    def __eq__(self, other: object) -> bool:
        return self.function(self.obj, other.obj) == 0

    def __le__(self, other: Compared) -> bool:
        return self.function(self.obj, other.obj) <= 0

    def __ge__(self, other: Compared) -> bool:
        return self.function(self.obj, other.obj) >= 0


@handles(functools.cmp_to_key)
def _cmp_to_key(ex, args, kwargs):
    function = _one("cmp_to_key", args, kwargs)

    def call(ex: Any, made: BuiltValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return ex.create(Compared, [function, _one("key", args, kwargs)], {})

    return BuiltValue(functools.cmp_to_key, [function], {}, call)
