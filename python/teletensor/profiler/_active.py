"""The profile that is being recorded, and record_function, which adds ranges to it."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._recording import Recording

active: Recording | None = None


class record_function:  # noqa: N801 - PyTorch's name
    """Names a range of the program in profiles. A context manager and a decorator; without a profile it does nothing.

    Args:
        name: the range's name.
        args: a text that is added to the name in the trace.
    """

    def __init__(self, name: str, args: str | None = None):
        self.name, self.args = name, args
        self._annotation = None

    def __enter__(self) -> record_function:
        if active is not None:
            self._annotation = active.annotate(self.name if self.args is None else f"{self.name} ({self.args})")
        return self

    def __exit__(self, *exception) -> None:
        if self._annotation is not None:
            import time

            self._annotation.end = time.perf_counter_ns()
            self._annotation = None

    def __call__(self, function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return wrapped
