"""torch.cuda.nvtx: named ranges. NVIDIA's profilers do not see this process, so only the nesting depth is counted."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterator

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]

_state = threading.local()
_numbers = itertools.count(1)


def range_push(msg: str) -> int:
    """Starts a nested range; returns its depth, from 0."""
    if not isinstance(msg, str):
        raise TypeError(f"expected the name of a range, got {type(msg).__name__}")
    depth = getattr(_state, "depth", 0)
    _state.depth = depth + 1
    return depth


def range_pop() -> int:
    """Ends the innermost range; returns its depth, -2 if there is none."""
    depth = getattr(_state, "depth", 0)
    if not depth:
        return -2
    _state.depth = depth - 1
    return depth - 1


def range_start(msg: str) -> int:
    """Starts a range that any thread may end; returns its number."""
    mark(msg)
    return next(_numbers)


def range_end(range_id: int) -> None:
    """Ends the range with this number."""
    if not isinstance(range_id, int):
        raise TypeError(f"expected the number of a range, got {type(range_id).__name__}")


def mark(msg: str) -> None:
    """Names a point of the program."""
    if not isinstance(msg, str):
        raise TypeError(f"expected a str, got {type(msg).__name__}")


@contextlib.contextmanager
def range(msg: str, *args, **kwargs) -> Iterator[None]:  # noqa: A001 - PyTorch's name
    """A nested range, for a ``with`` block or a function; its name is msg.format(*args, **kwargs)."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
