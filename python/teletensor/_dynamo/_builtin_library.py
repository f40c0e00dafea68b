"""Functions of the standard library of constants, re and json, computed during the capture; mappingproxy; weakref."""

from __future__ import annotations

import collections
import json
import re
import types
import weakref
from collections.abc import Callable
from typing import Any

from ._comparisons import fold
from ._handlers import handles
from ._values import (
    Break,
    BuiltValue,
    Constant,
    DictValue,
    FunctionValue,
    MatchValue,
    NeedsPlainRun,
    SequenceValue,
    Value,
    kind,
)

_SEARCHES = ("match", "search", "fullmatch")
_OF_PATTERN = frozenset((*_SEARCHES, "findall", "finditer", "split", "sub", "subn"))
_OF_MATCH = frozenset(("group", "groups", "groupdict", "start", "end", "span", "expand", "__getitem__"))
_ATTRIBUTES_OF_PATTERN = frozenset(("pattern", "flags", "groups"))
_ATTRIBUTES_OF_MATCH = frozenset(("string", "pos", "endpos", "lastindex", "lastgroup"))
_PLAIN = (str, bytes, int, float, bool, type(None))


# -- re


def _plain(ex: Any, value: Value) -> Any:
    found = ex.python_value(value)
    if type(found) not in _PLAIN and not isinstance(found, re.RegexFlag):
        raise Break(f"a {kind(found)} as an argument of a function of re")
    return found


def _compiled(pattern: Any, flags: Any = 0) -> re.Pattern:
    if isinstance(pattern, re.Pattern):
        if flags:
            raise Break("flags for a compiled pattern")  # raises ValueError
        return pattern
    if int(flags) & (re.DEBUG | re.LOCALE) or isinstance(pattern, bytes) and b"L" in pattern:
        raise Break("a pattern that prints, or depends on the locale")
    found = fold(re.compile, pattern, flags).value
    assert isinstance(found, re.Pattern)
    return found


def _pattern_of(ex: Any, args: list[Value], kwargs: dict[str, Value], names: tuple[str, ...]) -> tuple[re.Pattern, dict[str, Value]]:
    """The pattern and the other arguments of a call of a function of re."""
    given = dict(zip(names, args))
    if len(args) > len(names) or any(name in given or name not in names for name in kwargs) or "pattern" not in {**given, **kwargs}:
        raise Break("a function of re gets wrong arguments")
    given.update(kwargs)
    pattern, flags = ex.real(given.pop("pattern")), given.pop("flags", Constant(0))
    found = pattern.value if isinstance(pattern, Constant) and isinstance(pattern.value, re.Pattern) else _plain(ex, pattern)
    return _compiled(found, _plain(ex, flags)), given


def _of_re(name: str, names: tuple[str, ...]) -> Callable:
    def handler(ex: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        pattern, given = _pattern_of(ex, args, kwargs, names)
        return call_of_pattern(ex, pattern, name, [], given)

    return handler


def _compile(ex: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return Constant(_pattern_of(ex, args, kwargs, ("pattern", "flags"))[0])


def _escape(ex: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return fold(re.escape, *(_plain(ex, v) for v in [*args, *kwargs.values()]))


def _matches(pattern: re.Pattern, args: list[Any], kwargs: dict[str, Any]) -> list[Value]:
    """The results of finditer(), which generated code finds by their positions."""
    found = list(fold(lambda: list(pattern.finditer(*args, **kwargs))).value)
    return [MatchValue(match, pattern.finditer, args, kwargs, i) for i, match in enumerate(found)]


def call_of_pattern(ex: Any, pattern: re.Pattern, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """A method of a compiled pattern."""
    if name not in _OF_PATTERN:
        raise Break(f"{name}() of a Pattern")
    if pattern.flags & re.LOCALE:
        raise Break("a pattern that depends on the locale")
    if name in ("sub", "subn"):
        names = ("repl", "string", "count")
        given = {**dict(zip(names, args)), **kwargs}
        repl = ex.real(given.get("repl", Constant(None)))
        if isinstance(repl, FunctionValue):
            return _substituted(ex, pattern, name, repl, given)
    plain, keywords = [_plain(ex, v) for v in args], {k: _plain(ex, v) for k, v in kwargs.items()}
    if name == "finditer":
        return ex.over(_matches(pattern, plain, keywords))
    method = getattr(pattern, name)
    found = fold(lambda: method(*plain, **keywords)).value
    return MatchValue(found, method, plain, keywords) if isinstance(found, re.Match) else ex.constant_value(found)


def _substituted(ex: Any, pattern: re.Pattern, name: str, repl: Value, given: dict[str, Value]) -> Value:
    """sub() with a function in Python."""
    if set(given) - {"repl", "string", "count"} or "string" not in given:
        raise Break(f"{name}() gets wrong arguments")
    text, count = _plain(ex, given["string"]), _plain(ex, given.get("count", Constant(0)))
    if type(text) is not str or type(count) is not int or not isinstance(pattern.pattern, str):
        raise Break(f"{name}() of something that is not a string")
    parts, end, found = [], 0, _matches(pattern, [text], {})
    found = found[:count] if count > 0 else found if count == 0 else []
    for match in found:
        parts.append(text[end : match.match.start()])
        made = ex.python_value(ex.call(repl, [match], {}))
        if type(made) is not str:
            raise Break(f"{name}() with a function that does not return a string")
        parts.append(made)
        end = match.match.end()
    result = Constant("".join([*parts, text[end:]]))
    return result if name == "sub" else SequenceValue([result, Constant(len(found))], tuple)


class Matches:
    """A part of Executor."""

    @staticmethod
    def attribute_of_pattern(pattern: re.Pattern, name: str) -> Value:
        """An attribute of a pattern that is no method."""
        if name == "groupindex":
            return _proxy_of(DictValue({k: (Constant(k), Constant(v)) for k, v in pattern.groupindex.items()}))
        if name not in _ATTRIBUTES_OF_PATTERN:
            raise Break(f"attribute {name} of a Pattern")
        return Constant(getattr(pattern, name))

    @staticmethod
    def attribute_of_match(value: MatchValue, name: str) -> Value | None:
        """An attribute of a match; None if it is a method."""
        if name == "re":
            return Constant(value.match.re)
        if name in _ATTRIBUTES_OF_MATCH:
            return Constant(getattr(value.match, name))
        if name in _OF_MATCH:
            return None
        raise Break(f"attribute {name} of a Match")


def call_of_match(ex: Any, value: MatchValue, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """A method of a match."""
    if name not in _OF_MATCH:
        raise Break(f"{name}() of a Match")
    method, plain = getattr(value.match, name), [_plain(ex, v) for v in args]
    keywords = {k: _plain(ex, v) for k, v in kwargs.items()}
    return value_of_plain(fold(lambda: method(*plain, **keywords)).value)


# -- json


def _is_plain(obj: Any) -> bool:
    """Whether json writes the object as it writes any equal one of the same class."""
    if type(obj) in (list, tuple):
        return all(map(_is_plain, obj))
    if type(obj) is dict:
        return all(type(k) in _PLAIN and type(k) is not bytes and _is_plain(v) for k, v in obj.items())
    return type(obj) in _PLAIN and type(obj) is not bytes


def value_of_plain(obj: Any) -> Value:
    """A new value for an object of lists, dicts and constants."""
    if type(obj) is dict:
        return DictValue({k: (Constant(k), value_of_plain(v)) for k, v in obj.items()})
    if type(obj) in (list, tuple):
        return SequenceValue([value_of_plain(v) for v in obj], type(obj))
    return Constant(obj)


def _of_json(function: Callable, settings: tuple[str, ...]) -> Callable:
    def handler(ex: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if len(args) != 1 or any(name not in settings for name in kwargs):
            raise Break(f"json.{function.__name__}() with a class or function, or wrong arguments")
        obj, keywords = ex.python_value(args[0]), {k: ex.python_value(v) for k, v in kwargs.items()}
        if function is json.loads and type(obj) not in (str, bytes) or not (_is_plain(obj) or function is json.loads):
            raise Break(f"json.{function.__name__}() of a {kind(obj)}")
        if not all(map(_is_plain, keywords.values())):
            raise Break(f"json.{function.__name__}() gets wrong arguments")
        return value_of_plain(fold(lambda: function(obj, **keywords)).value)

    return handler


FUNCTIONS: dict[Callable, Callable] = {
    **{getattr(re, name): _of_re(name, ("pattern", "string", "flags")) for name in (*_SEARCHES, "findall", "finditer")},
    re.split: _of_re("split", ("pattern", "string", "maxsplit", "flags")),
    **{f: _of_re(f.__name__, ("pattern", "repl", "string", "count", "flags")) for f in (re.sub, re.subn)},
    re.compile: _compile, re.escape: _escape,
    json.dumps: _of_json(json.dumps, ("indent", "sort_keys", "separators", "ensure_ascii", "allow_nan", "skipkeys", "check_circular")),
    json.loads: _of_json(json.loads, ()),
}  # fmt: skip


@handles(types.MappingProxyType)
def _proxy(ex, args, kwargs):
    of = ex.real(args[0]) if len(args) == 1 and not kwargs else None
    if not isinstance(of, DictValue) or of.cls not in (dict, collections.OrderedDict):
        raise Break(f"a mappingproxy of a {kind(of)}")
    return _proxy_of(of)


def _proxy_of(of: DictValue) -> DictValue:
    value = DictValue(of.items, types.MappingProxyType)  # the same entries, whatever is written to them
    value.proxy_of = of
    value.is_of_object = True
    return value


@handles(weakref.ref)
def _weak_reference(ex, args, kwargs):
    of = ex.real(args[0]) if len(args) == 1 and not kwargs else None
    if of is None or of.source is None or getattr(of, "original", None) is None:
        raise Break("a weak reference with a callback, or to an object that the function makes")
    if "reference" not in vars(of):  # an object has one
        of.reference = BuiltValue(weakref.ref, [of], {}, _referred)
    return of.reference


def _referred(ex: Any, reference: BuiltValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if args or kwargs:
        raise Break("arguments of a weak reference")
    if ex.has_effects():  # the code that continues would own the object
        raise NeedsPlainRun("a weak reference after writes, which may have freed the object")
    return reference.args[0]
