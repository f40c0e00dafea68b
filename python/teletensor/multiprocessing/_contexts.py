"""Start methods: contexts whose processes connect to the engine of their parent."""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.context
import os
from collections.abc import Iterator

from .. import _connection


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


for _public in (get_all_start_methods, get_context, get_start_method, parents_engine, set_start_method, _SpawnContext, _SpawnProcess):
    _public.__module__ = "teletensor.multiprocessing"
