"""The trace that runs in this thread, which torch._C._get_tracing_state() returns."""

from __future__ import annotations

import threading
from typing import Any

from ._lazy import set_module

_current = threading.local()


class TracingState:
    """A running trace: its graph (a torch._C.Graph), and the scopes that programs push to mark the nodes of a module."""

    def __init__(self, graph: Any) -> None:
        self._graph, self._scopes = graph, []

    def graph(self) -> Any:
        """The graph with the nodes recorded so far."""
        return self._graph

    def push_scope(self, name: str) -> None:
        """Adds a scope to the names of the nodes that follow."""
        self._scopes.append(name)

    def pop_scope(self) -> None:
        """Removes the innermost scope. Raises RuntimeError if there is none."""
        if not self._scopes:
            raise RuntimeError("[pop_scope] expected a scope, got none")
        self._scopes.pop()

    def current_scope(self) -> str:
        """The active scopes, the outermost first, with "/" between them."""
        return "/".join(self._scopes)


def _get_tracing_state() -> TracingState | None:
    """The trace that runs in this thread, or None."""
    return getattr(_current, "state", None)


def set_tracing_state(state: TracingState | None) -> TracingState | None:
    """Sets the trace of this thread; returns the former one."""
    former, _current.state = _get_tracing_state(), state
    return former


def _is_tracing() -> bool:
    """Whether a trace runs in this thread."""
    return _get_tracing_state() is not None


def is_compiling() -> bool:
    """Whether the code is being compiled: True in functions that torch.compile captures, otherwise False."""
    return False


set_module("teletensor", TracingState)
