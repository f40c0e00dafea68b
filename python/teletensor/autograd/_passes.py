"""Calls at the end of a backward pass."""

from __future__ import annotations

import threading
from typing import Any, Callable

_state = threading.local()  # .passes: the lists of calls of the passes that this thread is in, outermost first


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
        passes.remove(calls)
    return result


def current_pass() -> list[Callable[[], None]] | None:
    """The calls at the end of the innermost pass of this thread, by which a pass is identified; None outside of passes."""
    passes = _passes()
    return passes[-1] if passes else None
