"""Registries of handlers for calls of builtin functions and classes; the modules `_builtin_*` fill them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

handlers: dict[Any, Callable] = {}
constructors: dict[type, Callable] = {}


def handles(*functions: Any) -> Callable:
    """Registers the handler of calls of functions."""

    def register(handler: Callable) -> Callable:
        for function in functions:
            (constructors if isinstance(function, type) else handlers)[function] = handler
        return handler

    return register
