"""compatibility: marks which names of teletensor.fx keep their signatures between releases (PyTorch's registries)."""

from __future__ import annotations

from typing import Any, Callable

_BACK_COMPAT_OBJECTS: dict[Any, None] = {}
_MARKED_WITH_COMPATIBILITY: dict[Any, None] = {}


def compatibility(is_backward_compatible: bool) -> Callable:
    """Returns a decorator that records a function or class in the registries and returns it unchanged."""

    def mark(marked: Any) -> Any:
        if is_backward_compatible:
            _BACK_COMPAT_OBJECTS.setdefault(marked)
        _MARKED_WITH_COMPATIBILITY.setdefault(marked)
        return marked

    return mark
