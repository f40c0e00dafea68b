"""Constructors of modules that only store the arguments of a function."""

from __future__ import annotations

import inspect
from typing import Callable

from .. import functional as F

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


def functional_forward(names: tuple[str, ...], function: str, options: dict[str, str], module: str) -> Callable:
    """A method with the given arguments that calls a function of nn.functional with them and `options`, name and expression.

    It looks the function up when it is called, so that it sees a replaced one.
    """
    arguments = ", ".join(names)
    given = ", ".join([arguments, *(f"{key}={value}" for key, value in options.items())])
    scope = {"F": F, "__name__": module}
    exec(f"def forward(self, {arguments}):\n    return F.{function}({given})", scope)  # noqa: S102
    return scope["forward"]
