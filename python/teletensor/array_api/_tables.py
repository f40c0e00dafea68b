"""Helper for functions generated from tables of names."""

from __future__ import annotations

from typing import Callable


def with_standard_name(name: str, function: Callable) -> Callable:
    """Gives a function a name of the standard and a docstring that refers to it."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The standard's {name}()."
    return function
