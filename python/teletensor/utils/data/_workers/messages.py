"""Tasks and results, which an iterator exchanges with its workers."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...._utils import ExceptionWrapper
from ..datapipes._settings import WorkerSetting
from .fetch import Options

CHECK_SECONDS = 5.0  # how often an idle worker checks that its parent runs, and the time limit for its exit

# Kinds of results. SAMPLES are collated in the parent. DIED and SESSION_NEEDED are not results of a task.
BATCH, SAMPLES, ERROR, END, DIED, SESSION_NEEDED = "batch", "samples", "error", "end", "died", "session needed"


@dataclass(frozen=True)
class Task:
    """A request for a batch."""

    epoch: int
    number: int
    index: Any


@dataclass(frozen=True)
class Result:
    """A worker's answer."""

    worker: Any
    epoch: int
    number: int
    kind: str
    value: Any = None


@dataclass(frozen=True)
class Setup:
    """The message that a worker receives at its start. ``environment`` has the variables by which it finds the parent's
    engine.
    """

    options: Options
    number: int
    num_workers: int
    base_seed: int
    init_fn: Callable | None
    forked: bool
    environment: dict[str, str]
    parent: int

    def call_init_fn(self) -> None:
        """Calls ``init_fn`` in the worker."""
        if isinstance(self.init_fn, WorkerSetting):
            self.init_fn(self.number, self.options.dataset)
        elif self.init_fn is not None:
            self.init_fn(self.number)

    @property
    def where(self) -> str:
        """The worker's description in messages of its exceptions."""
        return f"in DataLoader worker process {self.number}"


def failure(setup: Setup) -> ExceptionWrapper:
    """The exception being handled. One whose type cannot be sent becomes a RuntimeError."""
    wrapper = ExceptionWrapper(sys.exc_info(), setup.where)
    try:
        pickle.dumps(wrapper.exc_type)
    except Exception:
        wrapper.exc_type = RuntimeError
    return wrapper
