"""What a Program's runs do in the client before each run, registered while a function is traced.

The compiler collects the callbacks; layers below it register them, for example optimizers whose learning rate may change
between runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

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


@contextmanager
def without_hooks() -> Iterator[None]:
    """Refuses to call hooks of tensors in this thread's trace: they have to be called at every run."""
    _trace.refuses_hooks = True
    try:
        yield
    finally:
        _trace.refuses_hooks = False


def refuses_hooks() -> bool:
    """Whether this thread is in without_hooks()."""
    return getattr(_trace, "refuses_hooks", False)


def prepared(callbacks: Sequence[Callable[[], None]], run: Callable[[], Any]) -> Any:
    """The result of run(), which starts a Program or raises, after the callbacks. If either raises, nothing has run: calls
    ``callback.undo()`` of the callbacks that have it.
    """
    called: list[Callable[[], None]] = []
    try:
        for callback in callbacks:
            called.append(callback)
            callback()
        return run()
    except BaseException:
        for callback in reversed(called):
            if hasattr(callback, "undo"):
                callback.undo()
        raise


def before_each_run(callback: Callable[[], None]) -> None:
    """Calls ``callback()`` before each run of the Program that this thread is tracing; see prepared()."""
    callbacks = getattr(_trace, "callbacks", None)
    if callbacks is None:
        raise NotImplementedError("[trace] this trace has no runs in this process")
    callbacks.append(callback)
