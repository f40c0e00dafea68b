"""torch.ops.higher_order: operators whose arguments include functions, as targets of graph nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

OPERATORS: dict[str, HigherOrderOperator] = {}

# Records a call of an operator as a node: recorder(operator, args). Set by the recordings of make_fx and torch.export.
recorder: Callable[[HigherOrderOperator, tuple], Any] | None = None


class HigherOrderOperator:
    """An operator with functions among its arguments. A call computes; a recording adds a node with graphs of the functions."""

    namespace = "higher_order"

    def __init__(self, name: str, function: Callable) -> None:
        self._name = self.__name__ = self._opname = name
        self.__module__ = "torch._ops.higher_order"
        self.function = function
        self.__doc__ = function.__doc__
        OPERATORS[name] = self

    def name(self) -> str:
        """The operator's name."""
        return self._name

    def __repr__(self) -> str:
        return f"<HigherOrderOperator(op='{self._name}')>"

    def __str__(self) -> str:
        return self._name

    def __call__(self, /, *args: Any) -> Any:
        if recorder is not None:
            return recorder(self, args)
        return self.function(*args)


def set_recorder(function: Callable) -> None:
    """Sets what receives calls, on all threads; it records those of threads that record."""
    global recorder
    recorder = function
