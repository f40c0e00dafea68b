"""Where compiled frames begin and end. Imported by torch.compile, unlike what executes functions symbolically."""

from __future__ import annotations

import os
import sys
import types
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ._resume import Layout

VERSIONS = ((3, 11),)  # of Python, whose instructions can be captured
STDLIB = (os.path.dirname(os.__file__),)  # noqa: PTH120 - sysconfig, which knows it too, takes 10 ms to import
# Flags of code, as in the module inspect, whose import takes milliseconds.
_OPTIMIZED, _GENERATOR, _COROUTINE, _ITERABLE_COROUTINE, _ASYNC_GENERATOR = 1, 32, 128, 256, 512


class Failed(Exception):  # noqa: N818 - not an error
    """The frame cannot be compiled: it runs as plain Python."""


class Entry(NamedTuple):
    """Where a frame begins: at its first instruction, or after a graph break.

    Attributes:
        code: the function's code.
        target: the index of the instruction; -1: the beginning.
        layout: of the slots, if `target` is not -1.
    """

    code: types.CodeType
    target: int = -1
    layout: Layout | None = None


class GraphBreak(NamedTuple):
    """Why a graph ends, and the user's line."""

    reason: str
    where: str
    stack: tuple[str, ...]


_OF_MODULES = ("_call_module", "ModuleCalls._call_impl")


def program_name(entry: Entry, slots: tuple) -> str:
    """The name of the Program of a frame: that of the function, or of the class of the module that is called."""
    name = entry.code.co_qualname.encode(errors="backslashreplace").decode()  # surrogates cannot be printed
    is_of_module = name in _OF_MODULES and entry.target < 0 and len(slots) > 1 and slots[1]
    return type(slots[1][0]).__qualname__ if is_of_module else name


def can_compile(code: types.CodeType) -> bool:
    """Whether frames of the code can be compiled."""
    refused = _GENERATOR | _COROUTINE | _ASYNC_GENERATOR | _ITERABLE_COROUTINE
    return sys.version_info[:2] in VERSIONS and not code.co_flags & refused and bool(code.co_flags & _OPTIMIZED)
