"""torch._dynamo.decorators: marks on functions and tensors, all without effect because graphs are not compiled."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any

from ..compiler import substitute_in_graph  # noqa: F401 - also a name of this module


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None, wrapping: bool = True) -> Any:
    """Returns the function or module itself, or without one a decorator that does. The arguments have no effect."""
    return (lambda f: f) if fn is None else fn


def run(fn: Any = None) -> Any:
    """Returns the function itself, or without one a decorator that does."""
    return disable(fn)


def disallow_in_graph(fn: Callable) -> Callable:
    """Returns the function itself."""
    return fn


forbid_in_graph = disallow_in_graph


def optimize(*args: Any, **kwargs: Any) -> Callable:
    """Returns a decorator like torch.compile: it returns functions and modules unchanged."""
    return lambda f: f


def graph_break(msg: str = "") -> None:
    """Does nothing."""


skip_frame = graph_break


def mark_static(t: Any, index: Any = None) -> None:
    """Does nothing: sizes are never symbols."""


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Does nothing: tensors have no address in this process."""


def maybe_mark_dynamic(t: Any, index: Any, *, min: int | None = None, max: int | None = None) -> None:  # noqa: A002 - PyTorch's names
    """Does nothing: every size may differ from call to call."""


def mark_dynamic(
    t: Any, index: Any, *, hint_override: int | None = None, min: int | None = None, max: int | None = None,  # noqa: A002
    specialize_on: Any = None,
) -> None:  # fmt: skip
    """Does nothing: every size may differ from call to call."""


class error_on_graph_break(ContextDecorator):  # noqa: N801 - PyTorch's name
    """A context in which a graph break would be an error; there are no graphs."""

    def __init__(self, error_on_graph_break: bool) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        pass
