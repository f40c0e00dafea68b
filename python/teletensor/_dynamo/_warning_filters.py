"""warnings.catch_warnings() that begins and ends within a graph: the capture sets the filters, which no later call needs.

The calls of a graph run outside of the block: functions of which a call warns within it run as plain Python, as do those in which a
graph ends within the block, which would lose the filters of what follows.
"""

from __future__ import annotations

import warnings
from typing import Any

from ._handlers import handles
from ._values import Break, Constant, SequenceValue, Value
from ._warnings import note_first


class Block:
    """Stands for a catch_warnings object in the functions that are captured."""

    def __init__(self, options):
        self.options = options

    def __enter__(self):
        return begin(self.options)

    def __exit__(self, *raised):
        end()


def begin(options: dict[str, Any]) -> Any:
    """catch_warnings(**options).__enter__(), executed by the handler."""
    raise NotImplementedError


def end() -> None:
    """catch_warnings().__exit__(), executed by the handler."""
    raise NotImplementedError


class WarningFilters:
    """A part of Executor.

    Attributes:
        caught: the blocks that the function has entered, each with what it has recorded and the number of warnings before it.
    """

    caught: list[tuple[warnings.catch_warnings, list | None, int]]

    def begin_warnings(self) -> None:
        """Begins a capture outside of all blocks."""
        self.caught = []

    def end_warnings(self) -> None:
        """Restores the filters of the blocks in which a capture has ended."""
        while self.caught:
            self.caught.pop()[0].__exit__(None, None, None)


@handles(warnings.catch_warnings)
def _catch_warnings(ex: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if args:
        raise Break("catch_warnings() with positional arguments")
    options = {name: ex.python_value(v) for name, v in kwargs.items()}
    return ex.create(Block, [Constant(tuple(options.items()))], {})


def _begin(ex: Any, args: list[Value], _kwargs: dict[str, Value]) -> Value:
    block = warnings.catch_warnings(**dict(args[0].value))
    log = block.__enter__()
    ex.caught.append((block, log, note_first()))
    ex.of_this_process = "filters of warnings"
    return Constant(None) if log is None else SequenceValue([], list)


def _end(ex: Any, _args: list[Value], _kwargs: dict[str, Value]) -> Value:
    if not ex.caught:
        raise Break("the end of a block of catch_warnings() that was not entered")
    before = ex.caught[-1][2]
    is_noted = note_first() > before
    block, log, _ = ex.caught.pop()
    block.__exit__(None, None, None)
    if log or is_noted:
        raise Break("a call warns within catch_warnings()")
    return Constant(None)


def _setting(function: Any) -> Any:
    def handler(ex: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if not ex.caught:
            raise Break(f"warnings.{function.__name__}() outside of catch_warnings()")
        function(*map(ex.python_value, args), **{name: ex.python_value(v) for name, v in kwargs.items()})
        note_first()
        return Constant(None)

    return handler


FUNCTIONS = {
    begin: _begin, end: _end,
    **{f: _setting(f) for f in (warnings.simplefilter, warnings.filterwarnings, warnings.resetwarnings)},
}  # fmt: skip
