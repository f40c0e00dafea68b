"""Our signatures: from the generated stubs for operators, from `inspect.signature` for Python functions.

Wrappers describe themselves: `__wrapped__` is the wrapped function, `added_keyword` the parameter that the wrapper
adds, `second_argument` a parameter inserted after the first, and `__overloads__` lists the parameter lists of a
function that chooses by its arguments' types.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import os
import re
import types
from pathlib import Path

from ..public.table import not_implemented
from .text import described, from_stub

BUILD = Path(os.environ.get("TELETENSOR_BUILD", Path(__file__).resolve().parents[3] / "build"))
STUBS = BUILD / "generated/stubs/_C"


class Absent(Exception):
    """teletensor has no object of that name, or the object is not callable or raises NotImplementedError only."""


@functools.cache
def stub(name: str) -> dict[str, list[ast.FunctionDef]]:
    """The functions of a stub file by name; the methods of a class as `Class.name`."""
    found: dict[str, list[ast.FunctionDef]] = {}
    for node in ast.parse((STUBS / name).read_text()).body:
        rows = [(node.name, node)] if isinstance(node, ast.FunctionDef) else []
        if isinstance(node, ast.ClassDef):
            rows = [(f"{node.name}.{n.name}", n) for n in node.body if isinstance(n, ast.FunctionDef)]
        for key, function in rows:
            found.setdefault(key, []).append(function)
    return found


def _inner(thing):
    """The Python function that an overridable function contains; other objects unchanged."""
    return thing.__wrapped__ if type(thing).__name__ == "OverridableFunction" else thing


def find(path: str):
    """The object that corresponds to `torch.<path>`, and the class whose method it is, if any. Raises Absent."""
    parts = path.split(".")[1:]
    thing, owner = importlib.import_module("teletensor"), None
    place = "teletensor"
    for part in parts:
        owner = thing if isinstance(thing, type) else None
        try:
            thing = inspect.getattr_static(thing, part) if owner else getattr(thing, part)
        except AttributeError:
            try:
                thing = importlib.import_module(f"{place}.{part}")
            except ImportError:
                raise Absent(path) from None
        place += f".{part}"
    return _inner(thing), owner


@functools.cache
def _functions_of_stubs() -> dict[int, tuple[str, str]]:
    """The stub file and the name of each built-in function, by its identity."""
    import teletensor

    core = teletensor._C
    places = [(f"{name}.pyi", getattr(core, name)) for name in ("ops", "fft", "special", "linalg", "functional", "torch")]
    return {id(value): (file, name) for file, place in [("__init__.pyi", core), *places] for name, value in vars(place).items()}


def _built_in(thing, owner) -> list[str] | None:
    """The parameter lists of a built-in function or method; None if no stub declares it."""
    if owner is not None and isinstance(thing, types.MethodDescriptorType):
        rows = stub("__init__.pyi").get(f"{owner.__name__}.{thing.__name__}")
        return [from_stub(node, True) for node in rows] if rows else None
    file, name = _functions_of_stubs().get(id(thing), ("", ""))
    rows = stub(file).get(name) if file else None
    return [from_stub(node, False) for node in rows] if rows else None


def _without_first(row: str) -> str:
    return row.split(", ", 1)[1] if ", " in row else ""


def _texts(thing, owner) -> list[str]:
    """The parameter lists of a function, or of a method without `self` if `owner` is its class."""
    if overloads := getattr(thing, "__overloads__", None):
        rows = [_without_first(row) if owner is not None and row.startswith("input") else row for row in overloads]
        return list(rows)
    if isinstance(thing, (types.BuiltinFunctionType, types.MethodDescriptorType)):
        if (rows := _built_in(thing, owner)) is not None:
            return rows
    wrapped = _inner(getattr(thing, "__wrapped__", None))
    if wrapped is not None:
        import teletensor

        is_method = isinstance(wrapped, types.MethodDescriptorType)
        rows = _texts(wrapped, teletensor.Tensor if is_method else owner)
        if is_method and owner is None:
            rows = [f"input, {row}" if row else "input" for row in rows]
        if isinstance(wrapped, types.BuiltinFunctionType) and owner is not None:
            rows = [_without_first(row) for row in rows]
        if isinstance(wrapped, types.FunctionType) and owner is None:
            rows = [re.sub(r"^self\b", "input", row) for row in rows]
        if hasattr(thing, "second_argument") and not hasattr(wrapped, "second_argument"):
            head = 0 if owner is not None else 1
            rows = [", ".join([*row.split(", ")[:head], thing.second_argument, *row.split(", ")[head:]]) for row in rows]
        if added := getattr(thing, "added_keyword", None):
            name = added.split("=")[0]
            rows = [row if re.search(rf"\b{name}[=:]", row) else _with_keyword(row, added) for row in rows]
        return rows
    try:
        return [described(inspect.signature(thing), owner is not None)]
    except (TypeError, ValueError):
        return ["*args, **kwargs"]


def _with_keyword(row: str, added: str) -> str:
    if "**" in row:
        head, rest = row.rsplit("**", 1)
        return f"{head}{'' if '*' in head else '*, '}{added}, **{rest}"
    return ", ".join(p for p in (row, "" if "*" in row else "*", added) if p)


def signatures(path: str) -> list[str]:
    """The parameter lists of `torch.<path>` in teletensor, one per overload. Raises Absent."""
    thing, owner = find(path)
    if not_implemented(thing) or owner is not None and not_implemented(owner):
        raise Absent(path)
    if isinstance(thing, property) or not (callable(thing) or isinstance(thing, (staticmethod, classmethod))):
        raise Absent(path)
    if isinstance(thing, staticmethod):
        thing, owner = thing.__func__, None
    if isinstance(thing, classmethod):
        thing = thing.__func__
    name = path.rsplit(".", 1)[-1]
    rows = _texts(thing, owner)
    if owner is None and _renames_first(thing):
        rows = [r for row in rows for r in _first_renamed(row)]
    return rows + [row for row in _spelled(name, thing, owner) if row not in rows]


def _renames_first(thing) -> bool:
    """Whether a function accepts its first tensor under several names: operators, and functions with `out=`."""
    is_operator = isinstance(thing, types.BuiltinFunctionType) and id(thing) in _functions_of_stubs()
    wrapped = _inner(getattr(thing, "__wrapped__", None))
    return is_operator or wrapped is not None and (getattr(thing, "added_keyword", "") == "out=None" or _renames_first(wrapped))


def _first_renamed(row: str) -> list[str]:
    from teletensor._ops.out_variant import FIRST_NAMES

    first = row.split(",")[0]
    name, kind = first.split(":")[0].split("=")[0], first[len(first.split(":")[0].split("=")[0]) :]
    if not name.isidentifier() or not kind.startswith((": Tensor", ": Number|Tensor")) and kind:
        return [row]
    others = [n for n in FIRST_NAMES if f"{n}:" not in row and f"{n}=" not in row and n != name]
    return [row, *(f"{n}{row[len(name):]}" for n in others)]


def _spelled(name: str, thing, owner) -> list[str]:
    """Further parameter lists of an operator: its orders and names in `_ops/spellings.py`."""
    from teletensor._ops import spellings

    if not isinstance(_inner(getattr(thing, "__wrapped__", thing)), (types.BuiltinFunctionType, types.MethodDescriptorType)):
        return []
    rows = []
    for order in spellings.ORDERS.get(name.removesuffix("_"), ()):
        names = order.split()
        if owner is not None:
            names = [n for n in names if n != "input"]
        rows.append(", ".join(names) + ("" if owner is not None else ", *, out=None"))
    renamed = spellings.RENAMED.get(name.removesuffix("_"), {})
    if renamed:
        for row in _texts(thing, owner):
            for new, old in renamed.items():
                row = row.replace(old, new)
            rows.append(row)
    rows += spellings.signatures(name, owner is not None) or spellings.signatures(name.removesuffix("_"), owner is not None)
    return rows
