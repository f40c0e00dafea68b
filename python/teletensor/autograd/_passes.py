"""Calls at the end of a backward pass."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Callable

_state = threading.local()  # .passes: for each pass of this thread, outermost first, the list of its final calls


class FinalCalls(list[Callable[[], None]]):
    """The calls at the end of a pass."""

    def __init__(self, into: Sequence[Any] | None) -> None:
        super().__init__()
        self._into = into

    def accumulates_into(self, leaf: Any) -> bool:
        """Whether the pass adds to the leaf's `.grad`, if it reaches the leaf."""
        handle = getattr(leaf, "_handle", None)  # objects of one leaf have the same; wrappers have none
        return self._into is None or any(t is leaf or handle is not None and getattr(t, "_handle", None) == handle for t in self._into)


def _passes() -> list[FinalCalls]:
    if not hasattr(_state, "passes"):
        _state.passes = []
    return _state.passes


def run_pass(run: Callable, *args: Any, into: Sequence[Any] | None) -> Any:
    """Issues a backward pass, during which its hooks are called, and then makes the calls that the hooks registered.

    Args:
        into: the tensors whose gradients are accumulated; None for all leaves.
    """
    passes, calls = _passes(), FinalCalls(into)
    passes.append(calls)
    try:
        result = run(*args)
        for call in calls:  # a call may register further ones
            call()
    finally:
        passes.pop()
    return result


def current_pass() -> FinalCalls | None:
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
