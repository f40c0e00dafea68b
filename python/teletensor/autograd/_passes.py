"""Calls at the end of a backward pass."""

from __future__ import annotations

import threading
from typing import Any, Callable

_state = threading.local()  # .passes: for each pass of this thread, outermost first, the list of its final calls


def _passes() -> list[list[Callable[[], None]]]:
    if not hasattr(_state, "passes"):
        _state.passes = []
    return _state.passes


def run_pass(run: Callable, *args: Any) -> Any:
    """Issues a backward pass, during which its hooks are called, and then makes the calls that the hooks registered."""
    passes, calls = _passes(), []
    passes.append(calls)
    try:
        result = run(*args)
        for call in calls:  # a call may register further ones
            call()
    finally:
        passes.pop()
    return result


def current_pass() -> list[Callable[[], None]] | None:
    """The list of calls at the end of this thread's innermost pass; its identity identifies the pass. None outside of
    passes.
    """
    passes = _passes()
    return passes[-1] if passes else None


def at_end_of_outermost_pass(call: Callable[[], None]) -> None:
    """Registers a call at the end of this thread's outermost pass, unless it is registered. Requires a pass."""
    calls = _passes()[0]
    if call not in calls:
        calls.append(call)
