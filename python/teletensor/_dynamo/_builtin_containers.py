"""Containers: list(), dict(), set(), slice(), items, len(), copy()."""

from __future__ import annotations

import collections
import copy
import copyreg
import operator
import types
from collections.abc import Callable
from typing import Any

from .. import _C
from ..nn import Module
from . import _deques
from ._attributes import MISSING, raise_
from ._handlers import constructors, handles
from ._source import CHECK_KEYS, INSTANCE_DICT, constant
from ._values import (
    Break,
    Constant,
    DequeValue,
    DictValue,
    FunctionValue,
    ObjectValue,
    SequenceValue,
    SetValue,
    SliceValue,
    SymbolValue,
    Value,
    kind,
)


@handles(operator.setitem)
def _setitem(ex, args, kwargs):
    ex.set_item(*args)
    return Constant(None)


@handles(operator.delitem)
def _delitem(ex, args, kwargs):
    ex.delete_item(*args)
    return Constant(None)


@handles(operator.length_hint)
def _length_hint(ex, args, kwargs):
    if len(args) != 1 or not isinstance(ex.real(args[0]), (SequenceValue, DictValue)):
        raise Break("length_hint() of something else than a list, tuple or dict")
    return ex.length(*args)


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


for _cls in (set, frozenset):
    constructors[_cls] = lambda ex, args, kwargs, cls=_cls: ex.set_of(args[0], cls) if args else SetValue({}, cls, is_ordered=True)


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
            elements = ex.elements(other)
            for at, pair in enumerate(elements):
                if isinstance(ex.real(pair), Constant) and isinstance(ex.real(pair).value, (int, float, complex, type(None))):
                    return raise_(TypeError, f"cannot convert dictionary update sequence element #{at} to a sequence")
            pairs = [tuple(ex.elements(p)) for p in elements]
        for pair in pairs:
            if len(pair) != 2:
                raise Break("dict() of elements that are not pairs")
            ex.write_entry(value, ex.key_of(pair[0]), pair[0], pair[1])
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
    if isinstance(value, DequeValue):
        return _deques.copied(ex, value)
    if isinstance(value, Constant):
        return value
    if isinstance(value, ObjectValue):
        return _copied_object(ex, value, lambda v: v)
    raise Break(f"copy() of a {kind(value)}")


# Methods by which a class defines how its objects are copied.
_COPYING = (
    "__copy__", "__deepcopy__", "__getstate__", "__setstate__", "__reduce__", "__reduce_ex__", "__new__", "__getnewargs__",
    "__getnewargs_ex__",
)  # fmt: skip


def _copied_object(ex: Any, value: ObjectValue, of: Callable[[Value], Value]) -> ObjectValue:
    """A copy of an object whose class does not define how it is copied; `of` copies an attribute."""
    cls = value.cls
    defined = [n for n in _COPYING if ex.class_attribute(cls, n) not in (MISSING, getattr(object, n, MISSING))]
    has_slots = any(isinstance(v, types.MemberDescriptorType) for base in cls.__mro__ for v in vars(base).values())
    is_special = issubclass(cls, Module) or cls in copyreg.dispatch_table or not cls.__dictoffset__
    if defined or has_slots or is_special or value.entries is not None:
        raise Break(f"a copy of a {cls.__name__}")
    names = dict.fromkeys(vars(value.original)) if value.original is not None else {}
    names.update(dict.fromkeys(value.attributes))
    if value.original is not None:
        ex.guards.check(CHECK_KEYS, value.source.then(INSTANCE_DICT), tuple(vars(value.original)))
    made = ObjectValue(cls)
    for name in names:
        found = ex.instance_attribute(value, name)
        if found is not None:
            made.attributes[name] = of(found)
    return made


def named_tuple(ex, args, kwargs):
    """collections.namedtuple() of constants: the class is made by the capture, and the same in all calls, as in PyTorch."""
    values = [ex.python_value(v) for v in args]
    keywords = {"module": ex.frame.function.globals.get("__name__"), **{k: ex.python_value(v) for k, v in kwargs.items()}}
    try:
        cls = collections.namedtuple(*values, **keywords)
    except (TypeError, ValueError) as e:
        return raise_(type(e), str(e))
    return ex.wrap(cls, constant(cls))


def deep_copy(ex, args, kwargs):
    if len(args) != 1 or kwargs:
        raise Break("deepcopy() with a memo")
    return _deep(ex, args[0], {})


def _deep(ex: Any, value: Value, memo: dict[int, Value]) -> Value:
    value = ex.real(value)
    if id(value) in memo:
        return memo[id(value)]
    if isinstance(value, (Constant, SymbolValue, FunctionValue)):
        return value
    if isinstance(value, SequenceValue) and value.cls in (list, tuple, _C.Size):
        made: Value = SequenceValue([_deep(ex, item, memo) for item in value.items], value.cls)
    elif isinstance(value, DictValue) and value.cls in (dict, collections.OrderedDict):
        made = DictValue({k: (key, _deep(ex, item, memo)) for k, (key, item) in value.items.items()}, value.cls)
    elif isinstance(value, SetValue):
        made = SetValue(dict(value.items), value.cls)
    elif isinstance(value, ObjectValue):
        made = _copied_object(ex, value, lambda v: _deep(ex, v, memo))
    else:
        raise Break(f"deepcopy() of a {kind(value)}")
    memo[id(value)] = made
    return made


def _count_elements(mapping, iterable):
    """collections._count_elements() in Python; Counter calls it."""
    get = mapping.get
    for element in iterable:
        mapping[element] = get(element, 0) + 1


@handles(collections._count_elements)
def _counted(ex, args, kwargs):
    return ex.call(ex.wrap(_count_elements, constant(_count_elements)), args, kwargs)
