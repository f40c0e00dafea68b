"""torch.multiprocessing: Python's multiprocessing, with tensors as arguments, results and elements of queues.

A tensor that is sent to another process is the same tensor there: both processes see each other's writes, without an order
between them. Processes use the engine of their parent, also a private one. The default start method is "spawn": a forked
process cannot use a session of its parent.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.context
import os
from collections.abc import Iterator
from typing import Any

from .. import _connection
from .reductions import init_reductions
from .spawn import ProcessContext, ProcessException, ProcessExitedException, ProcessRaisedException, SpawnContext, spawn, start_processes

__all__ = [  # noqa: F822 - most names are those of the current context
    "get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy", *multiprocessing.__all__,
]  # fmt: skip

_STRATEGIES = {"file_descriptor", "file_system"}
_strategy = "file_descriptor"


def set_sharing_strategy(new_strategy: str) -> None:
    """Stores one of PyTorch's names. Tensors are shared by engines, whatever the strategy is."""
    global _strategy
    if new_strategy not in _STRATEGIES:
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}, expected one of {_STRATEGIES}")
    _strategy = new_strategy


def get_sharing_strategy() -> str:
    """The name passed to set_sharing_strategy last."""
    return _strategy


def get_all_sharing_strategies() -> set[str]:
    """PyTorch's names."""
    return set(_STRATEGIES)


@contextlib.contextmanager
def parents_engine() -> Iterator[None]:
    """Within the context, new processes connect to the engine of this process."""
    variables = dict(_connection.environment)
    if not variables and _connection._current is not None and _connection._current.address:
        variables = {"TELETENSOR_ADDRESS": _connection._current.address}
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


class _SpawnProcess(multiprocessing.context.SpawnProcess):
    """A process that connects to its parent's engine."""

    def start(self) -> None:
        """Starts the process."""
        with parents_engine():
            super().start()


class _SpawnContext(multiprocessing.context.SpawnContext):
    """The default context."""

    Process = _SpawnProcess


_spawn_context = _SpawnContext()
_method: str | None = None  # passed to set_start_method


def set_start_method(method: str | None, force: bool = False) -> None:
    """Sets the start method: "spawn", "forkserver" or "fork"; a forked process cannot use tensors of its parent."""
    global _method
    if _method is not None and not force:
        raise RuntimeError("context has already been set")
    if method is not None:
        get_context(method)
    _method = method


def get_start_method(allow_none: bool = False) -> str | None:
    """The start method, by default "spawn"."""
    return _method if _method is not None or allow_none else "spawn"


def get_context(method: str | None = None) -> multiprocessing.context.BaseContext:
    """The functions of this module for a start method."""
    method = method or get_start_method()
    return _spawn_context if method == "spawn" else multiprocessing.get_context(method)


def get_all_start_methods() -> list[str]:
    """The available start methods, the default first."""
    return sorted(multiprocessing.get_all_start_methods(), key=lambda name: name != "spawn")


def __getattr__(name: str) -> Any:
    """Process, Queue, Pool and the others, of the current start method."""
    if name in multiprocessing.__all__:
        return getattr(get_context(), name)
    raise AttributeError(f"module 'teletensor.multiprocessing' has no attribute {name!r}")


init_reductions()
