"""Context managers that change settings temporarily."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def temporary_settings(module: str, names: tuple[str, ...]) -> Callable[..., Any]:
    """Returns the function `flags` of a module: a context manager that sets the module's variables; None leaves a
    variable unchanged.
    """

    @contextmanager
    def flags(*args: Any, **values: Any) -> Iterator[None]:
        values.update(zip(names, args, strict=False))
        unknown = set(values) - set(names)
        if unknown:
            raise TypeError(f"flags() got an unexpected keyword argument '{min(unknown)}'")
        settings = sys.modules[module]
        previous = {name: getattr(settings, name) for name in values}
        try:
            for name, value in values.items():
                if value is not None:
                    setattr(settings, name, value)
            yield
        finally:
            for name, value in previous.items():
                setattr(settings, name, value)

    return flags
