"""The Programs of this process by which torch.compiler.stats() names what the engine counts."""

from __future__ import annotations

import threading
import weakref
from typing import Any

_lock = threading.Lock()
_programs: weakref.WeakSet[Any] = weakref.WeakSet()


def add(named: Any) -> None:
    """Adds an object with the attributes `_program` and `__name__`, which is not kept."""
    with _lock:
        _programs.add(named)


def all_named() -> list[Any]:
    """The objects that exist."""
    with _lock:
        return list(_programs)
