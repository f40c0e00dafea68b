"""Constructors of modules that only store the arguments of a function."""

from __future__ import annotations

import inspect
from typing import Callable

REQUIRED = inspect.Parameter.empty


def bound_arguments(name: str, parameters: dict, *, keywords_only: bool = False) -> tuple[inspect.Signature, Callable]:
    """Returns a constructor's signature, and a function that binds arguments to the signature and adds defaults."""
    kind = inspect.Parameter.KEYWORD_ONLY if keywords_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(p, kind, default=d) for p, d in parameters.items()])

    def bind(args: tuple, kwargs: dict) -> dict:
        try:
            found = signature.bind(*args, **kwargs)
        except TypeError as e:
            raise TypeError(f"{name}.__init__() {e}") from None
        found.apply_defaults()
        return found.arguments

    return signature, bind
