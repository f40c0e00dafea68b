"""Names that exist so that modules can be imported, and raise NotImplementedError when they are called."""

from __future__ import annotations

from typing import Any, Callable


def _function(module: str, name: str, what: str) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any):
        raise NotImplementedError(f"{module}.{name}: {what}")

    function.__name__ = function.__qualname__ = name
    function.__module__ = f"teletensor{module.removeprefix('torch')}"
    function.__doc__ = f"Raises NotImplementedError: {what}."
    function.__not_implemented__ = what
    return function


def _class(module: str, name: str, what: str) -> type:
    def __init__(self, *args: Any, **kwargs: Any):
        raise NotImplementedError(f"{module}.{name}: {what}")

    doc = f"Its constructor raises NotImplementedError: {what}."
    where = f"teletensor{module.removeprefix('torch')}"
    return type(name, (), {"__init__": __init__, "__doc__": doc, "__module__": where, "__not_implemented__": what})


def not_implemented(namespace: dict[str, Any], what: str, functions: str = "", classes: str = "") -> None:
    """Adds functions and classes that raise NotImplementedError to a module.

    Args:
        namespace: the module's globals().
        what: what is missing, and what to use instead: the end of the message.
        functions, classes: names, separated by spaces.
    """
    module = "torch" + namespace["__name__"].removeprefix("teletensor")
    for name in functions.split():
        namespace[name] = _function(module, name, what)
    for name in classes.split():
        namespace[name] = _class(module, name, what)
