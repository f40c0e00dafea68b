"""Containers: list(), dict(), set(), slice(), items, len(), copy()."""

from __future__ import annotations

import collections
import copy
import operator
from collections.abc import Callable
from typing import Any

from .. import _C
from ._handlers import constructors, handles
from ._values import Break, Constant, DictValue, ObjectValue, SequenceValue, SetValue, SliceValue, SymbolValue, Value
from ._wrap import hash_key


@handles(operator.setitem)
def _setitem(ex, args, kwargs):
    ex.set_item(*args)
    return Constant(None)


@handles(operator.delitem)
def _delitem(ex, args, kwargs):
    ex.delete_item(*args)
    return Constant(None)


@handles(len)
def _len(ex, args, kwargs):
    return ex.length(*args)


def _only_positional(name: str, kwargs: dict) -> None:
    if kwargs:
        raise Break(f"{name}() with keyword arguments")


def _sequence(cls: type) -> Callable:
    def handler(ex, args, kwargs):
        _only_positional(cls.__name__, kwargs)
        return SequenceValue(ex.elements(args[0]) if args else [], cls)

    return handler


constructors[list], constructors[tuple] = _sequence(list), _sequence(tuple)


@handles(_C.Size)
def _size(ex, args, kwargs):
    items = ex.elements(args[0]) if args else []
    if not all(isinstance(v, SymbolValue) or isinstance(v, Constant) and isinstance(v.value, int) for v in map(ex.real, items)):
        raise Break("a Size of values that are not numbers")
    return SequenceValue(items, _C.Size)


def _set_of(cls: type) -> Callable:
    def handler(ex, args, kwargs):
        items: dict[Any, Value] = {}
        for item in ex.unordered(args[0]) if args else []:
            items.setdefault(hash_key(ex.real(item)), item)
        return SetValue(items, cls)

    return handler


constructors[set], constructors[frozenset] = _set_of(set), _set_of(frozenset)


def update_dict(ex: Any, value: DictValue, args: list[Value], kwargs: dict[str, Value]) -> None:
    """dict.update()."""
    if args:
        other = ex.real(args[0])
        if isinstance(other, DictValue):
            pairs = [(k, v) for k, v in other.items.values()]
        elif isinstance(other, ObjectValue):
            if ex.has_attribute(other, "keys"):
                keys = ex.elements(ex.call(ex.get_attribute(other, "keys"), [], {}))
                pairs = [(k, ex.get_item(other, k)) for k in keys]
            else:
                pairs = [tuple(ex.elements(p)) for p in ex.elements(other)]
        else:
            pairs = [tuple(ex.elements(p)) for p in ex.elements(other)]
        for pair in pairs:
            if len(pair) != 2:
                raise Break("dict() of elements that are not pairs")
            ex.write_entry(value, hash_key(ex.real(pair[0])), pair[0], pair[1])
    for k, v in kwargs.items():
        ex.write_entry(value, k, Constant(k), v)


def _dict_of(cls: type) -> Callable:
    def handler(ex, args, kwargs):
        value = DictValue({}, cls)
        if cls is collections.defaultdict:
            value.default_factory = ex.real(args[0]) if args else Constant(None)
            args = args[1:]
        update_dict(ex, value, args, kwargs)
        return value

    return handler


for _cls in (dict, collections.OrderedDict, collections.defaultdict):
    constructors[_cls] = _dict_of(_cls)


@handles(slice)
def _slice(ex, args, kwargs):
    parts = [Constant(None), args[0], Constant(None)] if len(args) == 1 else [*args, *[Constant(None)] * (3 - len(args))]
    return SliceValue([ex.real(p) for p in parts])


@handles(copy.copy)
def _copy(ex, args, kwargs):
    value = ex.real(args[0])
    if isinstance(value, SequenceValue) and value.cls in (list, tuple):
        return SequenceValue(list(value.items), value.cls) if value.cls is list else value
    if isinstance(value, DictValue) and value.cls is dict:
        return DictValue(dict(value.items))
    if isinstance(value, Constant):
        return value
    raise Break(f"copy() of a {type(value).__name__}")
