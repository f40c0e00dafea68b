"""torch.distributed.elastic: ranks that restart after failures, and programs that start them.

``teletensor launch`` (docs/launch.md) starts, monitors and restarts the ranks; `agent` and torch.distributed.launcher are
PyTorch's interface to it.
"""

from __future__ import annotations

import importlib as _importlib

from . import multiprocessing

# Imported when they are used: a rank uses none of them.
_MODULES = ("agent", "events", "metrics", "rendezvous", "timer", "utils")


def __getattr__(name: str):
    if name in _MODULES:
        return _importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module 'torch.distributed.elastic' has no attribute {name!r}: not implemented (docs/launch.md)")
