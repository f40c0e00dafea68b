"""What selective checkpoints do with the kernels of custom operators, which are Python functions (utils/_selective_checkpoint.py)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class _Active(threading.local):
    around: Callable[[Callable, tuple, dict], Any] | None = None


_active = _Active()


@contextmanager
def kernels_run_by(around: Callable[[Callable, tuple, dict], Any]) -> Iterator[None]:
    """A context in which kernels are called by around(kernel, args, kwargs). Within a kernel, others are called directly."""
    former, _active.around = _active.around, around
    try:
        yield
    finally:
        _active.around = former


def run_kernel(kernel: Callable, args: Any, kwargs: dict[str, Any]) -> Any:
    """Calls a kernel of a custom operator."""
    around = _active.around
    if around is None:
        return kernel(*args, **kwargs)
    _active.around = None
    try:
        return around(kernel, tuple(args), kwargs)
    finally:
        _active.around = around
