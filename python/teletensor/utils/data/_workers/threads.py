"""Workers that are threads of this process, for data sets that use the session's tensors."""

from __future__ import annotations

import queue
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from ...._C import Tensor
from ..collate import collate, collate_tensor_fn, default_collate_fn_map, map_leaves
from .copies import WorkerCopies
from .fetch import Fetch
from .info import WorkerInfo, get_worker_info, set_thread_info
from .messages import BATCH, DIED, END, ERROR, Result, Setup, Task
from .thread_state import WorkerExit, begin_worker


class LaterStack:
    """Tensors that are stacked when their batch is used.

    Stacking uses the tensors, so the engine would wait for their bytes before it executes what is issued later.
    """

    def __init__(self, tensors: list[Tensor]):
        self.tensors = tensors


def collate_later(samples) -> Any:
    """Like default_collate, but stacks tensors later."""
    functions = default_collate_fn_map.with_numpy()
    if functions[Tensor] is collate_tensor_fn:
        functions = {**functions, Tensor: lambda batch, *, collate_fn_map: LaterStack(list(batch))}
    return collate(samples, collate_fn_map=functions)


def stack_now(batch) -> Any:
    """The batch with stacked tensors."""
    return map_leaves(lambda leaf: collate_tensor_fn(leaf.tensors) if isinstance(leaf, LaterStack) else leaf, batch)


class ThreadWorker:
    """A thread that loads batches in the order of its tasks. It raises exceptions as they are, without a traceback text."""

    def __init__(self, setup: Setup, results: queue.SimpleQueue):
        copies, options = WorkerCopies(), setup.options
        own = replace(options, dataset=copies.copy(options.dataset), collate_fn=copies.copy(options.collate_fn))
        setup = replace(setup, options=own, init_fn=copies.copy(setup.init_fn))
        self._setup, self._results, self._fetch = setup, results, None
        self._error: BaseException | None = None  # of the worker's start, or what has ended the worker
        self._stops = False
        self._executor = ThreadPoolExecutor(1, f"loader-{setup.number}")
        self._executor.submit(self._begin)

    def _begin(self) -> None:
        setup = self._setup
        self.identifier = threading.get_native_id()
        seed = setup.base_seed + setup.number
        set_thread_info(WorkerInfo(setup.number, setup.num_workers, seed, setup.options.dataset, None, "thread"))
        try:
            begin_worker(setup.base_seed, setup.number)
            setup.call_init_fn()
        except BaseException as error:
            self._error = error

    def _begin_epoch(self) -> None:
        self._fetch = None

    def _load(self, task: Task) -> tuple[str, Any]:
        try:
            if self._error is not None:
                raise self._error
            if self._fetch is None:
                self._fetch = Fetch(self._setup.options)
            return BATCH, self._fetch(task.index, collate_later)
        except StopIteration as end:
            return (END, None) if self._setup.options.iterable else (ERROR, end)
        except Exception as error:
            return ERROR, error
        except BaseException as error:  # os._exit(), sys.exit(): the worker answers no more
            self._error = error
            return DIED, error

    def _answer(self, task: Task) -> None:
        if self._stops:
            return
        kind, value = self._load(task)
        self._results.put(Result(self, task.epoch, task.number, kind, value))

    def send(self, task: Task) -> None:
        """Requests a batch."""
        self._executor.submit(self._answer, task)

    def begin_epoch(self) -> None:
        """Starts a new iteration of an IterableDataset."""
        self._executor.submit(self._begin_epoch)

    def describe_exit(self) -> str:
        """How the worker ended, as of a process."""
        error = self._error
        code = error.args[0] if isinstance(error, (WorkerExit, SystemExit)) and error.args else None
        return f"DataLoader worker (thread {self.identifier}) exited unexpectedly with exit code {code}."

    def begin_stop(self) -> None:
        """Drops all requests that have not begun."""
        self._stops = True
        self._executor.shutdown(wait=False, cancel_futures=True)

    def finish_stop(self, seconds: float) -> None:
        """Waits for the batch in progress, so that the data set is not used afterwards."""
        if get_worker_info() is None and seconds > 0:
            self._executor.shutdown(wait=True)
