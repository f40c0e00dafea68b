"""The profile that is being recorded, and record_function, which adds ranges to it."""

from __future__ import annotations

import functools
from typing import Any, Protocol

from ._lazy import set_module


class Annotated(Protocol):
    """A profile that is being recorded: profiler._recording.Recording."""

    def annotate(self, name: str, is_operator: bool = False) -> Any:
        """Starts a range; its attribute `end` is set when it ends. `is_operator`: whether PyTorch records it as an operator."""


active: Annotated | None = None


class record_function:  # noqa: N801 - PyTorch's name
    """Names a range of the program in profiles. A context manager and a decorator; without a profile it does nothing.

    Args:
        name: the range's name.
        args: a text that is added to the name in the trace.
    """

    _is_operator = False

    def __init__(self, name: str, args: str | None = None):
        self.name, self.args = name, args
        self._annotation = None

    def __enter__(self) -> record_function:
        if active is not None:
            name = self.name if self.args is None else f"{self.name} ({self.args})"
            self._annotation = active.annotate(name, self._is_operator)
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


class operator_range(record_function):  # noqa: N801 - like record_function
    """Names a range that PyTorch records as an operator."""

    _is_operator = True


set_module("teletensor.autograd.profiler", record_function)
