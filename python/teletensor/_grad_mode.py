"""Switches for what the calling thread records."""

from __future__ import annotations

import functools

from . import _C

is_grad_enabled = _C.is_grad_enabled
is_inference_mode_enabled = _C.is_inference_mode


class _Switch:
    """A context manager that is a decorator too, with or without parentheses."""

    def __new__(cls, function=None, *args, **kwargs):
        self = super().__new__(cls)
        if callable(function):
            self.__init__()
            return self(function)
        return self

    def __call__(self, function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with self.clone():
                return function(*args, **kwargs)

        return wrapped

    def clone(self):
        return type(self)()


class no_grad(_Switch):  # noqa: N801 - PyTorch's name
    """Within it nothing is recorded for gradients."""

    enabled = False

    def __enter__(self) -> None:
        self.before = _C.set_grad_enabled(self.enabled)

    def __exit__(self, *exc) -> None:
        _C.set_grad_enabled(self.before)


class enable_grad(no_grad):  # noqa: N801
    """Within it operations are recorded, also inside no_grad."""

    enabled = True


class set_grad_enabled(no_grad):  # noqa: N801
    """Sets recording now; as a context manager, until its end."""

    def __new__(cls, mode: bool):
        return object.__new__(cls)

    def __init__(self, mode: bool):
        self.enabled = mode
        self.before = _C.set_grad_enabled(mode)

    def __enter__(self) -> None:
        _C.set_grad_enabled(self.enabled)

    def clone(self):
        before = self.before
        _C.set_grad_enabled(before)
        return set_grad_enabled(self.enabled)


class inference_mode(_Switch):  # noqa: N801
    """As no_grad, and its results can never be recorded later."""

    def __init__(self, mode: bool = True):
        self.mode = mode

    def __enter__(self) -> None:
        self.before = _C.set_inference_mode(self.mode), _C.set_grad_enabled(not self.mode and _C.is_grad_enabled())

    def __exit__(self, *exc) -> None:
        _C.set_inference_mode(self.before[0])
        _C.set_grad_enabled(self.before[1])

    def clone(self):
        return inference_mode(self.mode)
