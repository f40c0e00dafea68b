"""Checks of names and numbers that a .pt2 file contains. A name may become part of generated code or an attribute of a module."""

from __future__ import annotations

import keyword
import re
from typing import Any

from ..nn import Module

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*", re.ASCII)  # ModuleDict accepts "a-b"
_LENGTH, _DEPTH = 1024, 64
_TAKEN = frozenset(["self", "torch", "pytree", "fx_pytree", "inf", "nan", "NoneType"])  # names that generated code uses


def text(value: Any, what: str) -> str:
    """A text of bounded length."""
    if type(value) is not str or len(value) > _LENGTH:
        raise RuntimeError(f"[export.load] expected {what} as a text of at most {_LENGTH} characters, got {_short(value)}")
    return value


def _short(value: Any) -> str:
    return repr(value[:60] if isinstance(value, str) else type(value).__name__)


def identifier(value: Any, what: str, private: bool = False) -> str:
    """A name in ASCII that is no keyword of Python.

    Args:
        private: the name may be a keyword, and may not start and end with two underscores.
    """
    name = text(value, what)
    refused = name.startswith("__") if private else keyword.iskeyword(name)
    if not _IDENTIFIER.fullmatch(name) or refused:
        raise RuntimeError(f"[export.load] expected {what} to be an identifier, got {_short(name)}")
    return name


def node_name(value: Any) -> str:
    """The name of a value of the graph."""
    name = identifier(value, "the name of a value")
    if name in _TAKEN:
        raise RuntimeError(f"[export.load] expected another name of a value than {name}, which generated code uses")
    return name


def path(value: Any, what: str) -> str:
    """The path of a tensor or module: names and numbers with dots, none of which is an attribute of every module."""
    name = text(value, what)
    parts = name.split(".")
    if len(parts) > _DEPTH:
        raise RuntimeError(f"[export.load] expected {what} to have at most {_DEPTH} parts, got {len(parts)}")
    blank = Module()
    for part in parts:
        if not _PART.fullmatch(part) or part.startswith("__") or hasattr(blank, part):
            raise RuntimeError(f"[export.load] expected {what} to be a path of names, got {_short(name)}")
    return name


def module_name(value: Any) -> str:
    """The name of a graph within the graph."""
    name = identifier(value, "the name of a subgraph")
    return path(name, "the name of a subgraph")


def integer(value: Any, what: str, low: int = -(2**63), high: int = 2**63 - 1) -> int:
    """An integer within bounds."""
    if type(value) is not int or not low <= value <= high:
        shown = value if type(value) is int and abs(value) < 2**70 else type(value).__name__
        raise RuntimeError(f"[export.load] expected {what} to be an integer from {low} to {high}, got {shown}")
    return value
