"""The variables outside of a function on which its trace depends: those of its closure and of its module."""

from __future__ import annotations

import builtins
import dis
import types
from collections.abc import Callable, Iterator
from typing import Any

from .. import _C

_PLAIN = frozenset({int, bool, str, bytes, type(None), _C.dtype, _C.device})
_DEPTH, _ITEMS = 4, 64  # of containers, beyond which only the object itself is compared
_FUNCTIONS = 64  # that are followed
_MISSING = object()


class _Same:
    """An object in a key: equal to itself only. Keeps it alive, so that no other one gets its place in memory."""

    __slots__ = ("_object",)

    def __init__(self, value: Any) -> None:
        self._object = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other._object is self._object

    def __hash__(self) -> int:
        return id(self._object)


def _global_names(code: types.CodeType) -> Iterator[str]:
    """The names of the module that a function reads, also in the functions that it defines."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _global_names(constant)


def _is_constant(value: Any) -> bool:
    """Whether a variable is assumed not to change: modules, classes, and functions other than those that are followed."""
    return isinstance(value, (types.ModuleType, type, types.BuiltinFunctionType)) or (
        isinstance(value, types.FunctionType) and value.__module__.partition(".")[0] == __name__.partition(".")[0]
    )


class Environment:
    """The values of the variables that a function, and the Python functions among them, read by name.

    Numbers, texts, lists, tuples and dicts are compared by value; a module by its identity and its mode (training or not), and every
    other object, also a tensor, by its identity alone. What a function reads as an attribute of such an object is not compared.
    """

    def __init__(self, function: Callable) -> None:
        self._function = function
        self._readers: list[Callable[[], Any]] | None = None  # made at the first call, when the module is complete

    def add_to(self, key: list[Any]) -> None:
        """Adds the present values to a key."""
        readers = self._readers
        if readers is None:
            readers = self._readers = list(_readers(self._function))
        for read in readers:
            _add(read(), key, 0)


def _readers(function: Callable) -> Iterator[Callable[[], Any]]:
    waiting, seen, names = [getattr(function, "__func__", function)], set(), set()
    while waiting and len(seen) < _FUNCTIONS:
        current = waiting.pop()
        if not isinstance(current, types.FunctionType) or current in seen:
            continue
        seen.add(current)
        for cell in current.__closure__ or ():
            value = _contents(cell)
            if not _is_constant(value):
                waiting.append(value)
                yield lambda cell=cell: _contents(cell)
        module = current.__globals__
        for name in dict.fromkeys(_global_names(current.__code__)):
            value = module.get(name, _MISSING)
            is_builtin = value is _MISSING and hasattr(builtins, name)
            if is_builtin or _is_constant(value) or (id(module), name) in names:
                continue
            names.add((id(module), name))
            waiting.append(value)
            yield lambda module=module, name=name: module.get(name, _MISSING)


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return _MISSING


def _add(value: Any, key: list[Any], depth: int) -> None:
    kind = type(value)
    if kind in _PLAIN:
        key += (kind, value)
    elif kind is float or kind is complex:
        key += (kind, repr(value))
    elif kind in (list, tuple, dict) and depth < _DEPTH and len(value) <= _ITEMS:
        key += (kind, len(value))
        for item in [x for pair in value.items() for x in pair] if kind is dict else value:
            _add(item, key, depth + 1)
    else:
        key += (_Same(value), getattr(value, "training", None) if hasattr(value, "register_forward_hook") else None)
