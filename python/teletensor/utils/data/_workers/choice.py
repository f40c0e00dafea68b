"""Chooses between processes and threads for a loader's workers."""

from __future__ import annotations

import multiprocessing
import sys
import types
from multiprocessing.context import BaseContext
from typing import TYPE_CHECKING, Any

from ...._C import Tensor

if TYPE_CHECKING:
    from ..loader import DataLoader
    from .fetch import Options

THREADS = "thread"  # an additional value of multiprocessing_context
MAX_OBJECTS = 4000
OPAQUE = (str, bytes, int, float, complex, type(None), type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)


def holds_tensors(value: Any) -> bool:
    """Whether tensors are found among the attributes and elements of an object, of which a limited number is visited."""
    waiting, seen = [value], set()
    while waiting and len(seen) < MAX_OBJECTS:
        found = waiting.pop()
        if isinstance(found, Tensor):
            return True
        if id(found) in seen or isinstance(found, OPAQUE):
            continue
        seen.add(id(found))
        if isinstance(found, dict):
            waiting += list(found.values())[:MAX_OBJECTS]
        elif isinstance(found, (list, tuple, set, frozenset)):
            waiting += list(found)[:MAX_OBJECTS]
        elif isinstance(getattr(found, "__dict__", None), dict):
            waiting += vars(found).values()
    return False


def check_context(context: Any) -> None:
    """Raises ValueError or TypeError unless the value is None, a start method, "thread" or a context."""
    methods = multiprocessing.get_all_start_methods()
    if isinstance(context, str) and context not in (*methods, THREADS):
        raise ValueError(
            f"multiprocessing_context option should specify a valid start method in {methods!r}, but got "
            f"multiprocessing_context={context!r}"
        )
    if context is not None and not isinstance(context, (str, BaseContext)):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string specifying the start method, but "
            f"got multiprocessing_context={context}"
        )


def choose(loader: DataLoader, options: Options) -> Any:
    """The multiprocessing context of a loader's workers, or THREADS.

    Threads are used for batches made in the engine, and, unless processes with sessions of their own are requested, for
    data sets that hold tensors: a forked process cannot use the session of its parent.
    """
    given = loader.multiprocessing_context
    if given == THREADS or options.gather is not None:
        return THREADS
    chosen = sys.modules.get("teletensor.multiprocessing")  # set_start_method() of this package precedes Python's default
    if given is None or given is chosen:
        given = chosen.get_start_method(allow_none=True) if chosen else None
    context = multiprocessing.get_context(given) if given is None or isinstance(given, str) else given
    return THREADS if context.get_start_method() == "fork" and holds_tensors(loader.dataset) else context
