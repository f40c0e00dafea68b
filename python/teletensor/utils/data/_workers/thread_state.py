"""The state of a process that a worker has to itself although it is a thread: the generators of random numbers, and its end."""

from __future__ import annotations

import functools
import os
import random
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ...._random import use_thread_generator
from .info import numpy_seeds

_local = threading.local()  # of a worker: .python and .numpy, its generators, and .worker, which ends with the thread
_lock = threading.Lock()
_workers = 0  # that run
_replaced: list[tuple[ModuleType, str, Any]] = []  # functions of modules, while workers run
_OF_NUMPY = {"seed": "seed", "sample": "random_sample", "ranf": "random_sample"}  # functions, not methods of the generator


class WorkerExit(BaseException):
    """Ends a worker whose data set has called os._exit()."""


def _in_thread(attribute: str, name: str, shared: Callable) -> Callable:
    @functools.wraps(shared)
    def call(*args: Any, **kwargs: Any) -> Any:
        own = getattr(_local, attribute, None)
        return (shared if own is None else getattr(own, name))(*args, **kwargs)

    return call


def _exit(status: int) -> None:
    if hasattr(_local, "python"):
        raise WorkerExit(status)
    next(function for _, name, function in _replaced if name == "_exit")(status)


def _replace(module: ModuleType, name: str, function: Callable) -> None:
    _replaced.append((module, name, getattr(module, name)))
    setattr(module, name, function)


def _replace_functions(module: ModuleType, shared: Any, attribute: str, others: dict[str, str]) -> None:
    """Makes the functions of a module's shared generator use the generator of the thread in workers."""
    for name, function in list(vars(module).items()):
        if getattr(function, "__self__", None) is shared or name in others:
            _replace(module, name, _in_thread(attribute, others.get(name, name), function))


def begin_worker(base_seed: int, number: int) -> None:
    """Gives the calling thread generators of its own, with the seeds of a worker process: teletensor's, and those of the
    functions of the modules `random` and `numpy.random`. os._exit() raises WorkerExit in the thread.

    The modules' functions are replaced until the thread of the last worker has ended. A function that was imported from them before
    (``from random import shuffle``) uses the generator of the process.
    """
    global _workers
    try:
        import numpy.random as numpy
    except ImportError:
        numpy = None
    with _lock:
        _workers += 1
        if _workers == 1:
            _replace_functions(random, random._inst, "python", {})  # type: ignore[attr-defined]
            if numpy is not None:
                _replace_functions(numpy, numpy.mtrand._rand, "numpy", _OF_NUMPY)
            _replace(os, "_exit", _exit)
    _local.worker = _Worker()
    _local.python = random.Random(base_seed + number)
    if numpy is not None:
        _local.numpy = numpy.RandomState(numpy_seeds(base_seed, number))
    use_thread_generator(base_seed + number)


class _Worker:
    """Undoes begin_worker() when it is destroyed, which is when its thread has ended: a task of the executor could not do it,
    because a loader may be destroyed at any time, also while the executor's locks are held.
    """

    def __del__(self):
        global _workers
        use_thread_generator(None)
        with _lock:
            _workers -= 1
            while not _workers and _replaced:
                setattr(*_replaced.pop())
