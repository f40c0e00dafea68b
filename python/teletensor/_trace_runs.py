"""What a Program's runs do in the client before each run, registered while a function is traced.

The compiler collects the callbacks; layers below it register them, for example optimizers whose learning rate may change
between runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_trace = threading.local()


@contextmanager
def collected() -> Iterator[list[Callable[[], None]]]:
    """A list to which before_each_run() appends in this thread."""
    callbacks: list[Callable[[], None]] = []
    _trace.callbacks = callbacks
    try:
        yield callbacks
    finally:
        del _trace.callbacks


def before_each_run(callback: Callable[[], None]) -> None:
    """Calls ``callback()`` before each run of the Program that this thread is tracing."""
    callbacks = getattr(_trace, "callbacks", None)
    if callbacks is None:
        raise NotImplementedError("[trace] this trace has no runs in this process")
    callbacks.append(callback)
