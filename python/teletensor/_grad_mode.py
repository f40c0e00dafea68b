"""Context managers that control whether the calling thread records operations for gradients."""

from __future__ import annotations

import functools
import warnings

from . import _C
from ._lazy import set_module


def _set_grad_enabled(mode: bool) -> bool:
    return _C.set_grad_enabled(mode)


def before_write(tensor: _C.Tensor) -> _C.Tensor:
    """What computes the values of a write to the tensor: a copy if gradients are recorded, which may need the replaced values."""
    return tensor.clone() if _C.is_grad_enabled() and tensor.requires_grad and not tensor.is_leaf else tensor


def is_grad_enabled() -> bool:
    """Whether the calling thread records operations for gradients."""
    return _C.is_grad_enabled()


def is_inference_mode_enabled() -> bool:
    """Whether the calling thread is in inference mode."""
    return _C.is_inference_mode()


def _in_context(generator, context):
    """Wraps a generator function so that every step runs inside a new context."""

    @functools.wraps(generator)
    def wrapped(*args, **kwargs):
        steps = generator(*args, **kwargs)
        with context():
            try:
                value = steps.send(None)
            except StopIteration as e:
                return e.value
        while True:
            # Between the steps the caller's own modes apply.
            try:
                sent = yield value
            except GeneratorExit:
                with context():
                    steps.close()
                raise
            except BaseException as e:  # noqa: BLE001 - passed on to the generator
                resume, argument = steps.throw, e
            else:
                resume, argument = steps.send, sent
            with context():
                try:
                    value = resume(argument)
                except StopIteration as e:
                    return e.value

    return wrapped


class _ModeContext:
    """A context manager that also decorates functions and generators."""

    def __call__(self, function):
        if isinstance(function, type):
            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. You should only decorate "
                "functions or methods. To preserve the current behavior of class decoration, you can directly decorate "
                "the `__init__` method and nothing else.",
                FutureWarning,
                stacklevel=2,
            )
            construct, context = function.__init__, self.clone

            @functools.wraps(construct)
            def __init__(instance, *args, **kwargs):
                with context():
                    construct(instance, *args, **kwargs)

            function.__init__ = __init__
            return function
        import inspect  # 7 ms, a tenth of `import teletensor`

        if inspect.isgeneratorfunction(function):
            return _in_context(function, self.clone)

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with self.clone():
                return function(*args, **kwargs)

        return wrapped

    def clone(self):
        return type(self)()


class _NoArgModeContext(_ModeContext):
    """A _ModeContext that can also decorate without parentheses."""

    def __new__(cls, orig_func=None):
        self = super().__new__(cls)
        return self if orig_func is None else self(orig_func)


class no_grad(_NoArgModeContext):  # noqa: N801 - PyTorch's name
    """Disables recording for gradients."""

    enabled = False

    def __enter__(self) -> None:
        self.before = _set_grad_enabled(self.enabled)

    def __exit__(self, *exc) -> None:
        _C.set_grad_enabled(self.before)


class enable_grad(no_grad):  # noqa: N801
    """Enables recording for gradients, also inside no_grad."""

    enabled = True


class set_grad_enabled(_ModeContext):  # noqa: N801
    """Enables or disables recording at once. As a context manager, restores the previous mode at the block's end."""

    def __init__(self, mode: bool):
        self.mode = bool(mode)
        self.before = _set_grad_enabled(self.mode)

    def __call__(self, function):
        _C.set_grad_enabled(self.before)  # a decorator has no effect until the function runs
        return super().__call__(function)

    def __enter__(self) -> None:
        _set_grad_enabled(self.mode)

    def __exit__(self, *exc) -> None:
        _C.set_grad_enabled(self.before)

    def clone(self):
        return set_grad_enabled(self.mode)


class inference_mode(_ModeContext):  # noqa: N801
    """Disables recording, like no_grad. ``inference_mode(False)`` enables recording, also inside inference_mode."""

    def __new__(cls, mode=True):
        self = super().__new__(cls)
        if isinstance(mode, bool):
            return self
        self.mode = True
        return self(mode)

    def __init__(self, mode: bool = True):
        self.mode = mode

    def __enter__(self) -> None:
        self.before = _C.set_inference_mode(self.mode), _set_grad_enabled(not self.mode)

    def __exit__(self, *exc) -> None:
        _C.set_inference_mode(self.before[0])
        _C.set_grad_enabled(self.before[1])

    def clone(self):
        return inference_mode(self.mode)


set_module("teletensor.autograd.grad_mode", enable_grad, inference_mode, no_grad, set_grad_enabled)
