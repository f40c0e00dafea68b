"""Signatures as text: `input: Tensor, other: Tensor|Number, *, alpha: Number=1`, made from stubs and Python functions."""

from __future__ import annotations

import ast
import inspect
import re

# Words of annotations, and the short names of types in a signature's text. Other annotations are omitted.
TYPES = {
    "Tensor": "Tensor", "Number": "Number", "_complex": "Number", "PySymType": "Number", "_int": "int", "SymInt": "int", "int": "int",
    "_float": "float", "float": "float", "_bool": "bool", "bool": "bool", "str": "str", "_size": "ints", "Size": "ints",
    "_dtype": "dtype", "DeviceLikeType": "device", "Device": "device", "_layout": "layout", "memory_format": "memory_format",
    "Generator": "Generator", "_Number": "Number", "_DeviceLike": "device",
}  # fmt: skip


def annotation(text: str) -> str:
    """The types that an annotation of a stub names, such as `Tensor|Number`; empty if it names others."""
    text = text.replace("torch.", "").replace("typing.", "")
    found = []
    rest = re.sub(r"(?:Sequence|list|tuple|List|Tuple)\[([^\[\]]*)\]", lambda m: _sequence(m[1], found), text)
    rest = re.sub(r"Optional\[(.*)\]", r"\1", rest)
    for part in rest.split("|"):
        part = part.strip()
        if part in ("None", ""):
            continue
        if part not in TYPES:
            return ""
        found.append(TYPES[part])
    return "|".join(sorted(set(found), key=str.lower))


def _sequence(inner: str, found: list[str]) -> str:
    words = {TYPES.get(w.strip()) for w in inner.replace(",", "|").split("|")} - {None}
    for word, plural in (("Tensor", "Tensors"), ("int", "ints"), ("float", "floats"), ("Number", "Numbers")):
        if word in words:
            found.append(plural)
    return ""


def default_text(value) -> str:
    """A default as a literal; `...` for objects that have none."""
    if isinstance(value, float) and value == int(value) and abs(value) < 1e15:
        return repr(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        text = repr(value)
        return text if text.lstrip("-") not in ("inf", "nan") else "..."
    if isinstance(value, (tuple, list)) and all(isinstance(v, (bool, int, float, str)) for v in value):
        return repr(tuple(value))
    return "..."


def from_stub(node: ast.FunctionDef, method: bool) -> str:
    """The parameters of a stub's function; a method's `self` is omitted, a function's is `input`."""
    a = node.args
    parts = []
    positional = [*a.posonlyargs, *a.args]
    defaults = [None] * (len(positional) - len(a.defaults)) + a.defaults
    for i, (p, d) in enumerate(zip(positional, defaults)):
        if i == 0 and method and p.arg in ("self", "cls"):
            continue
        parts.append(_stub_parameter(p, d, "input" if p.arg == "self" else p.arg))
        if a.posonlyargs and i == len(a.posonlyargs) - 1:
            parts.append("/")
    if a.vararg:
        parts.append("*" + a.vararg.arg + _kind(a.vararg))
    elif a.kwonlyargs:
        parts.append("*")
    parts += [_stub_parameter(p, d, p.arg) for p, d in zip(a.kwonlyargs, a.kw_defaults)]
    if a.kwarg:
        parts.append("**" + a.kwarg.arg)
    return ", ".join(p for p in parts if p != "/" or len(parts) > 1)


def _kind(p: ast.arg) -> str:
    kind = annotation(ast.unparse(p.annotation)) if p.annotation else ""
    return f": {kind}" if kind else ""


def _stub_parameter(p: ast.arg, default: ast.expr | None, name: str) -> str:
    text = name + _kind(p)
    if default is None:
        return text
    try:
        return f"{text}={default_text(ast.literal_eval(default))}"
    except ValueError:
        return f"{text}=..."


def described(signature: inspect.Signature, skip_first: bool) -> str:
    """The parameters of a Python function."""
    parts, starred = [], False
    rows = list(signature.parameters.values())[1 if skip_first else 0 :]
    for i, p in enumerate(rows):
        if p.kind is p.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        star = "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""
        starred = starred or star == "*"
        positional = p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        optional = p.default is not p.empty or positional and any(q.default is not q.empty for q in rows[:i])  # `empty` is a default
        parts.append(f"{star}{p.name}" + (f"={default_text(p.default)}" if optional else ""))
        if p.kind is p.POSITIONAL_ONLY and (i + 1 == len(rows) or rows[i + 1].kind is not p.POSITIONAL_ONLY):
            parts.append("/")
    return ", ".join(parts)
