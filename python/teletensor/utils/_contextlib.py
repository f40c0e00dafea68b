"""torch.utils._contextlib: base classes of context managers that also decorate functions and generators."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from .._grad_mode import _in_context, _ModeContext, _NoArgModeContext

__all__ = ["context_decorator"]

_DecoratorContextManager, _NoParamDecoratorContextManager = _ModeContext, _NoArgModeContext


def context_decorator(ctx: Any, func: Callable) -> Callable:
    """Wraps a function, so that each call runs in a context.

    Args:
        ctx: a context manager, or a function that returns one for each call.
    """
    if callable(ctx) and hasattr(ctx, "__enter__"):
        raise AssertionError(f"expected a context manager or a function that returns one, got {ctx}, which is both: pass lambda: ctx()")
    make = ctx if callable(ctx) else lambda: ctx
    if inspect.isclass(func):
        raise RuntimeError("Cannot decorate classes; it is ambiguous whether or not only the constructor or all methods should have the "
                           "context manager applied; additionally, decorating a class at definition-site will prevent use of the "
                           "identifier as a conventional type.")  # fmt: skip
    if inspect.isgeneratorfunction(func):
        return _in_context(func, make)

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with make():
            return func(*args, **kwargs)

    return wrapped
