"""The engine's operators as objects: what their declarations say, and how to call them with a list of arguments."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from .. import _C


def _custom_function(name: str) -> Any:
    """The function of an operator that the current session's engine has loaded from a library."""
    number = next(number for number, known, *_ in _C.custom_operators() if known == name)
    return functools.partial(_C.call_custom, number)


class Operator:
    """An operator's declaration."""

    def __init__(self, name: str):
        parameters, self.is_pointwise, self.is_view, self.is_random, self.num_outputs = _C._declaration(name)
        self.name = name
        self.names = [p[0] for p in parameters]
        self.num_positional = sum(not p[1] for p in parameters)
        self.written = [p[2] for p in parameters]
        self.function = _custom_function(name) if "::" in name else getattr(_C.ops, name)

    def _bound(self, arguments: Sequence[Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        """The positional and keyword arguments of a call."""
        count = self.num_positional
        return arguments[:count], dict(zip(self.names[count:], arguments[count:], strict=True))

    def result_sizes(self, arguments: Sequence[Any]) -> list | None:
        """The sizes of the results; None if they depend on data."""
        positional, keywords = self._bound(arguments)
        return _C._result_sizes(self.name, *positional, **keywords)

    def layouts(self, facts: _C.SizeFacts, arguments: Sequence[Any]) -> list[tuple[list[int], list[int], int]]:
        """The sizes, strides and offsets of the results. Numbers of the arguments and results may stand for expressions."""
        positional, keywords = self._bound(arguments)
        return facts.infer(self.name, *positional, **keywords)

    def call(self, arguments: Sequence[Any], out: Sequence[_C.Tensor] | None = None) -> list[_C.Tensor]:
        positional, keywords = self._bound(arguments)
        if out is not None:
            keywords["out"] = out[0] if len(out) == 1 else tuple(out)
        result = self.function(*positional, **keywords)
        return [] if result is None else [result] if isinstance(result, _C.Tensor) else list(result)


@functools.cache
def operator_named(name: str) -> Operator:
    return Operator(name)
