"""What the functions that are made from tables of names share."""

from __future__ import annotations

from typing import Callable


def named(name: str, function: Callable) -> Callable:
    """The function under a name of the standard, which describes it."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The standard's {name}()."
    return function
