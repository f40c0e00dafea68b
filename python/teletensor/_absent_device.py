"""Functions and classes of devices that the engine does not have: they act as in a PyTorch that was built without the device.

Counts are zero, queries of a build answer "no", and what needs a device raises PyTorch's exception with PyTorch's message.
Where PyTorch's own error is about an internal name that its build lacks, the error is that of the device's initialization.
"""

from __future__ import annotations

import inspect
from typing import Any, Callable


def _define(namespace: dict[str, Any], device: str, name: str, signature: Callable, outcome: Callable[[], Any], doc: str) -> None:
    parameters = inspect.signature(signature)

    def function(*args: Any, **kwargs: Any):
        try:
            parameters.bind(*args, **kwargs)
        except TypeError as e:
            raise TypeError(f"{name}(): {e}") from None
        return outcome()

    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = namespace["__name__"], doc
    function.__signature__, function.__absent_device__ = parameters, device
    namespace[name] = function


def raising(namespace: dict[str, Any], device: str, error: type[Exception], message: str, **functions: Callable) -> None:
    """Adds functions that raise an error to a module.

    Args:
        namespace: the module's globals().
        device: the device's name, for docs/names.md.
        error, message: of the exception; `{name}` in the message is the function's name.
        functions: a lambda with the signature, by name.
    """
    for name, signature in functions.items():

        def outcome(text: str = message.replace("{name}", name)):
            raise error(text)

        _define(namespace, device, name, signature, outcome, f"Raises {error.__name__}: there is no such device.")


def answering(namespace: dict[str, Any], device: str, value: Callable[[], Any], **functions: Callable) -> None:
    """Adds functions that return `value()`, as without a device, to a module; see raising()."""
    for name, signature in functions.items():
        _define(namespace, device, name, signature, value, f"Returns {value()!r}: there is no such device.")


def classes(namespace: dict[str, Any], device: str, error: type[Exception], message: str, **constructors: Callable) -> None:
    """Adds classes whose constructors raise an error to a module; `{name}` in the message is the class's name. See raising()."""
    for name, signature in constructors.items():

        def __new__(cls: type, *args: Any, _signature: Callable = signature, _text: str = message.replace("{name}", name), **kwargs: Any):
            inspect.signature(_signature).bind(*args, **kwargs)
            raise error(_text)

        doc = f"Its constructor raises {error.__name__}: there is no such device."
        shown = inspect.signature(signature)
        attributes = {"__new__": __new__, "__doc__": doc, "__module__": namespace["__name__"], "__absent_device__": device}
        namespace[name] = type(name, (), {**attributes, "__signature__": shown})


class AbsentDevice:
    """Base of the context managers that select a device: entering one raises the class's `error`."""

    error: Exception

    def __init__(self, device: Any) -> None:
        self.device = device

    def __enter__(self) -> None:
        raise type(self.error)(*self.error.args)

    def __exit__(self, kind: type | None, value: BaseException | None, trace: Any) -> None:
        return None
