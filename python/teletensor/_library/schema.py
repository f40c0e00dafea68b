"""Schemas of custom operators: parsed from text such as "scale(Tensor x, float factor=2.0) -> Tensor", or inferred."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any

from .. import _C, _layouts

_HEAD = re.compile(r"^\s*(?:(?P<ns>\w+)::)?(?P<name>\w*)(?:\.(?P<overload>\w+))?\s*\((?P<args>.*)\)\s*->\s*(?P<returns>.*?)\s*$", re.DOTALL)
_ARGUMENT = re.compile(r"^(?P<type>\S+(?:\([^)]*\)\S*)?)\s+(?P<name>\w+)(?:\s*=\s*(?P<default>.*))?$", re.DOTALL)


_READABLE = {"SymInt": "int", "Scalar": "number", "ScalarType": "int", "Layout": "int", "MemoryFormat": "int"}


def _readable_type(kind: str) -> str:
    """The type of an argument as PyTorch's errors write it: "Optional[int]", "List[Tensor]"."""
    if kind.endswith("?"):
        return f"Optional[{_readable_type(kind[:-1])}]"
    if kind.endswith("]"):
        return f"List[{_readable_type(kind[: kind.rindex('[')])}]"
    return _READABLE.get(kind, kind)


@dataclass(frozen=True)
class Argument:
    """An argument of an operator. `type` is PyTorch's, such as "Tensor?" or "int[]"."""

    name: str
    type: str
    default: Any = inspect.Parameter.empty
    kwarg_only: bool = False
    is_write: bool = False

    @property
    def has_default(self) -> bool:
        """Whether the argument may be omitted."""
        return self.default is not inspect.Parameter.empty

    @functools.cached_property
    def conversion(self) -> tuple[frozenset[type], Callable[[Any], Any]] | None:
        """argument_values.conversion() of the type."""
        from .argument_values import conversion  # at the first call of an operator

        return conversion(self.type)

    @functools.cached_property
    def converted_default(self) -> Any:
        """The default as operators receive it; unchanged if it does not have the type."""
        try:
            return self.default if self.conversion is None or not self.has_default else self.conversion[1](self.default)
        except Exception:  # noqa: BLE001 - RefusedValue, or the error of an invalid text
            return self.default


@dataclass(frozen=True)
class Schema:
    """The name, arguments and results of an operator."""

    name: str  # namespace::name
    overload_name: str
    arguments: tuple[Argument, ...]
    text: str
    returns: str

    def __str__(self) -> str:
        return self.text

    @functools.cached_property
    def is_mutable(self) -> bool:
        """Whether the operator changes an argument."""
        return any(a.is_write for a in self.arguments)

    @functools.cached_property
    def _all_positional(self) -> bool:
        return not any(a.kwarg_only for a in self.arguments)

    @functools.cached_property
    def _checked(self) -> tuple[tuple[int, frozenset[type], Callable[[Any], Any]], ...]:
        """Of the arguments whose values are checked: the position, the classes that need no conversion, and the conversion."""
        return tuple((i, *a.conversion) for i, a in enumerate(self.arguments) if a.conversion is not None)

    def _refusal(self, position: int, value: Any, error: Exception) -> Exception:
        """The error of a call for the error of an argument's conversion."""
        a = self.arguments[position]
        if isinstance(error, OverflowError):
            return OverflowError(f"{error}: {self.name}() expected a number of at most 64 bits for argument '{a.name}', got {value!r}")
        if type(error).__name__ != "RefusedValue":
            return error
        return RuntimeError(
            f"{self.name}() Expected a value of type '{_readable_type(a.type)}' for argument '{a.name}' but instead found type "
            f"'{type(value).__name__}'.\nPosition: {position}\nValue: {value!r}\nDeclaration: {self.text}"
        )

    def bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Returns the positional and the keyword-only arguments of a call, converted to the types of the schema, with defaults.

        Raises:
            RuntimeError: an argument is missing, unknown, given twice, or not of the type that the schema requires.
            OverflowError: a Scalar has more than 64 bits.
        """
        if len(args) == len(self.arguments) and not kwargs and self._all_positional:
            values = [*args]
            i = 0
            try:
                for i, exact, convert in self._checked:
                    if type(args[i]) not in exact:
                        values[i] = convert(args[i])
            except Exception as e:
                raise self._refusal(i, args[i], e) from e.__cause__
            return values, {}
        positional = [a for a in self.arguments if not a.kwarg_only]
        if len(args) > len(positional):
            raise RuntimeError(
                f"{self.name}() expected at most {len(positional)} argument(s) but received {len(args)} argument(s). "
                f"Declaration: {self.text}"
            )
        given = dict(zip((a.name for a in positional), args))
        for name, value in kwargs.items():
            if name in given or name not in {a.name for a in self.arguments}:
                raise RuntimeError(f"Unknown keyword argument '{name}' for operator '{self.name}'. Schema: {self.text}")
            given[name] = value
        found = {}
        for position, a in enumerate(self.arguments):
            if a.name in given:
                value = given[a.name]
                try:
                    found[a.name] = value if a.conversion is None else a.conversion[1](value)
                except Exception as e:
                    raise self._refusal(position, value, e) from e.__cause__
            elif a.has_default:
                found[a.name] = a.converted_default
            else:
                raise RuntimeError(f"{self.name}() is missing value for argument '{a.name}'. Declaration: {self.text}")
        return [found[a.name] for a in positional], {a.name: found[a.name] for a in self.arguments if a.kwarg_only}

    def without_defaults(self, positional: Sequence[Any], keyword: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        """The bound arguments as handlers receive them: without trailing defaults and default keywords."""
        defaults = {a.name: a for a in self.arguments}

        def is_default(argument: Argument, value: Any) -> bool:
            return argument.has_default and not isinstance(value, _C.Tensor) and value == argument.converted_default

        in_order = [a for a in self.arguments if not a.kwarg_only]
        kept = max((i + 1 for i, (a, v) in enumerate(zip(in_order, positional)) if not is_default(a, v)), default=0)
        return tuple(positional[:kept]), {n: v for n, v in keyword.items() if not is_default(defaults[n], v)}


def _split(text: str) -> list[str]:
    """Divides at commas outside of parentheses, brackets and quotes."""
    parts, depth, quote = [""], 0, ""
    for c in text:
        quote = ("" if c == quote else quote) if quote else c if c in "\"'" else ""
        depth += 0 if quote else (c in "([") - (c in ")]")
        if c == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts if p.strip()]


def _default(text: str, kind: str) -> Any:
    named = {"None": None, "True": True, "False": False}
    if text in named:
        return named[text]
    if kind.startswith("ScalarType"):
        return getattr(_C, text)
    if kind.startswith(("MemoryFormat", "Layout")) and hasattr(_layouts, text):
        return getattr(_layouts, text)
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text  # an enumeration's name, such as contiguous_format
    return _C.device(value) if kind.startswith("Device") else value


def parse(text: str, namespace: str = "") -> Schema:
    """Parses a schema. Raises RuntimeError if it is malformed."""
    head = _HEAD.match(text)
    if head is None:
        raise RuntimeError(f"[library] expected a schema such as 'name(Tensor x) -> Tensor', got {text!r}")
    arguments, keyword_only = [], False
    for part in _split(head["args"]):
        if part == "*":
            keyword_only = True
            continue
        match = _ARGUMENT.match(part)
        if match is None:
            raise RuntimeError(f"[library] expected an argument such as 'Tensor x', got {part!r} in {text!r}")
        kind = re.sub(r"\([^)]*\)", "", match["type"])
        default = inspect.Parameter.empty if match["default"] is None else _default(match["default"].strip(), kind)
        arguments.append(Argument(match["name"], kind, default, keyword_only, "!" in match["type"]))
    name = f"{head['ns'] or namespace}::{head['name']}"
    full = f"{name}{'.' + head['overload'] if head['overload'] else ''}({head['args']}) -> {head['returns']}"
    return Schema(name, head["overload"] or "", tuple(arguments), full, head["returns"])


_ELEMENTS = {_C.Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str"}
_SINGLE = {**_ELEMENTS, _C.device: "Device", _C.dtype: "ScalarType"}


def _type_name(annotation: Any) -> str | None:
    """PyTorch's name of a type, or None if operators cannot have it."""
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation in _SINGLE:
        return _SINGLE[annotation]
    if origin in (typing.Union, UnionType):
        rest = [a for a in args if a is not NoneType]
        if set(rest) == {int, float, bool}:
            return "Scalar" + "?" * (NoneType in args)
        inner = _type_name(rest[0]) if len(rest) == 1 else None
        return inner and inner + "?"
    if isinstance(origin, type) and issubclass(origin, Sequence) and args and origin is not tuple:
        inner = _type_name(args[0])
        return inner and f"{inner}[]"
    return None


def _default_text(value: Any) -> str:
    if isinstance(value, (str, _C.device)):
        return f'"{value}"'
    return str(value).removeprefix("torch.")


def infer_schema(prototype_function: Callable, /, *, mutates_args: Any, op_name: str | None = None, tags: Any = ()) -> str:
    """Returns the schema of a function with type annotations. `tags` have no effect.

    Args:
        mutates_args: the names of the tensors that the function changes, or "unknown" for all.
        op_name: a name to put before the arguments.

    Raises:
        ValueError: a type annotation is missing, or operators cannot have its type.
    """
    signature = inspect.signature(prototype_function)
    annotations = typing.get_type_hints(prototype_function)

    def fail(what: str) -> typing.NoReturn:
        raise ValueError(f"infer_schema(func): {what} Got func with signature {signature})")

    parts, keyword_only, written = [], False, 0
    for name, p in signature.parameters.items():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.POSITIONAL_ONLY):
            fail("We do not support positional-only, *args or **kwargs arguments.")
        if p.kind is p.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            parts.append("*")
        if name not in annotations:
            fail(f"Parameter {name} must have a type annotation.")
        kind = _type_name(annotations[name])
        if kind is None:
            fail(f"Parameter {name} has unsupported type {annotations[name]}.")
        if kind.startswith("Tensor") and (mutates_args == "unknown" or name in mutates_args):
            kind = kind.replace("Tensor", f"Tensor(a{written}!)", 1)
            written += 1
        parts.append(f"{kind} {name}" + ("" if p.default is p.empty else f"={_default_text(p.default)}"))
    missing = set() if mutates_args == "unknown" else set(mutates_args) - set(signature.parameters)
    if missing:
        fail(f"{missing} in mutates_args were not found in the custom op's signature.")
    if "return" not in annotations:
        fail("No return type annotation was provided. Please add one.")
    return f"{op_name or ''}({', '.join(parts)}) -> {_returns(annotations['return'], fail)}"


def _returns(annotation: Any, fail: Callable) -> str:
    if annotation in (None, NoneType):
        return "()"
    several = typing.get_origin(annotation) is tuple
    names = [_type_name(a) for a in (typing.get_args(annotation) if several else [annotation])]
    if None in names:
        fail(f"Return has unsupported type {annotation}.")
    return f"({', '.join(names)})" if several and len(names) != 1 else names[0]
