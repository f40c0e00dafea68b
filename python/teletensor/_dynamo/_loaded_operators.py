"""Operators that the engine has loaded from libraries, in captured functions: nodes whose target is the operator."""

from __future__ import annotations

from typing import Any

from .._library import loaded
from ._source import constant
from ._values import Break, Constant, Value


def find(ex: Any, args: list[Value], _: dict[str, Value]) -> Value:
    """loaded.packet(): the operators of a session do not change."""
    found = loaded.packet(ex.python_value(args[0]))
    return Constant(None) if found is None else ex.wrap(found, constant(found))


def names(ex: Any, args: list[Value], _: dict[str, Value]) -> Value:
    """loaded.names()."""
    return ex.constant_value(loaded.names(ex.python_value(args[0])))


def call(ex: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """LoadedOverload.__call__()."""
    overload = getattr(ex.real(args[0]), "original", None)
    if not isinstance(overload, loaded.LoadedOverload):
        raise Break("a call of an operator that the function has made")
    return ex.call_in_graph("call_function", overload, args[1:], kwargs)


FUNCTIONS = {loaded.packet: find, loaded.names: names, loaded.LoadedOverload.__call__: call}
