"""torch.distributed.rpc.functions: decorators of functions that other workers call."""

from __future__ import annotations

from collections.abc import Callable


def async_execution(fn: Callable) -> Callable:
    """Marks a function that returns a Future: its caller receives the Future's value, and no thread waits for it."""
    fn._is_async_execution = True
    return fn


def _is_async(function: Callable) -> bool:
    return getattr(function, "_is_async_execution", False)
