"""print() of texts and numbers, if it is one of config.reorderable_logging_functions; otherwise it ends the graph.

Each call of the compiled function prints: before the graph if no operator precedes it, else after it.
"""

from __future__ import annotations

import io
from typing import Any

from . import config
from ._attributes import lookup
from ._builtin_text import text_of
from ._handlers import handles
from ._values import (
    Break,
    ComputedFloat,
    Constant,
    DictValue,
    ExceptionValue,
    ItemValue,
    ObjectValue,
    Opaque,
    RunTimeNumber,
    SequenceValue,
    SymbolValue,
    Value,
    kind,
)


class Print:
    """A call of print().

    Args:
        is_early: whether no operator precedes it.
        args: texts and numbers.
        settings: sep, end and flush.
        file: the file that exists, if it is given.
    """

    def __init__(self, is_early: bool, args: list[Value], settings: dict[str, Any], file: Value | None) -> None:
        self.is_early, self.args, self.settings, self.file = is_early, args, settings, file

    def text(self, code: Any) -> str:
        """The statement of the generated code."""
        parts = [*map(code.value, self.args), *(f"{name}={code.constant(v)}" for name, v in self.settings.items())]
        if self.file is not None:
            parts.append(f"file={code.read(self.file.source)}")
        return f"{code.constant(print)}({', '.join(parts)})"


def _part(ex: Any, value: Value) -> Value:
    """What is printed of an argument: its text as it is now, or a number that differs from call to call."""
    value = ex.real(value)
    if isinstance(value, SymbolValue) and not value.is_unbacked or isinstance(value, (RunTimeNumber, ComputedFloat)):
        return value
    if isinstance(value, (SequenceValue, DictValue)):
        if any(not isinstance(leaf, Constant) for leaf in ex.leaves(value)):
            raise Break(f"print() of a {kind(value)} of values that differ from call to call")
    elif not isinstance(value, (Constant, ExceptionValue, ObjectValue)) or isinstance(value, ItemValue):
        raise Break(f"print() of a {kind(value)}")
    return text_of(ex, value, str)


@handles(print)
def _print(ex, args, kwargs):
    if print not in config.reorderable_logging_functions:
        raise Break("print(), which torch._dynamo.config.reorderable_logging_functions does not contain")
    if set(kwargs) - {"sep", "end", "flush", "file"} or ex.has_bodies():
        raise Break("print() gets wrong arguments, or is in a function that an operator calls")
    if ex.has_custom_calls:
        raise Break("print() after a call of a custom operator, which may print")
    settings = {name: ex.python_value(v) for name, v in kwargs.items() if name != "file"}
    if not all(settings.get(n) is None or type(settings[n]) is str for n in ("sep", "end")):
        raise Break("print() gets wrong arguments")
    if type(settings.get("flush", False)) is not bool:
        raise Break("print() gets wrong arguments")
    file = ex.real(kwargs.get("file", Constant(None)))
    if isinstance(file, Constant) and file.value is None:
        file = None
    else:
        stream = getattr(file, "obj", None) if isinstance(file, Opaque) else getattr(file, "original", None)
        is_of_library = isinstance(stream, io.TextIOBase) and type(lookup(type(stream), "write")).__name__ == "method_descriptor"
        if not is_of_library or file.source is None:
            raise Break("print() to an object that is no file")
    ex.prints.append(Print(not ex.calls, [_part(ex, a) for a in args], settings, file))
    return Constant(None)
