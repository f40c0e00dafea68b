"""Marks functions that are made of several operators here and are one operator in PyTorch, for traces of a program."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

# Calls a marked function: recorder(its operator in PyTorch, the function, args, kwargs). Set while a trace runs.
recorder: Callable[[str, Callable, tuple, dict[str, Any]], Any] | None = None


def one_operator(name: str) -> Callable[[Callable], Callable]:
    """Marks a function as PyTorch's operator of this name."""

    def mark(function: Callable) -> Callable:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if recorder is None:
                return function(*args, **kwargs)
            return recorder(name, function, args, kwargs)

        return call

    return mark


def set_recorder(function: Callable | None) -> None:
    """Sets the function that calls marked functions; None removes it."""
    global recorder
    recorder = function
