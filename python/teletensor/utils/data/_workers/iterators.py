"""The iterators of a DataLoader."""

from __future__ import annotations

import atexit
import os
import queue
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .... import _connection
from ...._C import Tensor
from ...._utils import ExceptionWrapper
from ..collate import map_leaves
from ..datapipes._settings import WorkerSetting, seed
from ..datapipes.datapipe import IterDataPipe, MapDataPipe
from ..sampler import numbers_of
from .choice import THREADS, choose
from .fetch import Fetch, Options, keep_freed_memory
from .messages import CHECK_SECONDS, DIED, END, ERROR, SESSION_NEEDED, Result, Setup, Task
from .parent import ProcessWorker
from .threads import ThreadWorker, collate_later, stack_now

if TYPE_CHECKING:
    from ..loader import DataLoader

_SESSION_NEEDED_WARNING = (
    "[DataLoader] a worker process needs tensors, which belong to the session of this process: threads load this data set "
    "instead. Return NumPy arrays from it to use processes, or set multiprocessing_context='spawn' or 'forkserver' for "
    "processes with sessions of their own (multiprocessing_context='thread' selects threads without this warning)"
)


def _pinned(data: Any) -> Any:
    if isinstance(data, (Tensor, str, bytes)) or not hasattr(data, "pin_memory"):
        return data
    return data.pin_memory()


def pin_memory(data: Any) -> Any:
    """The data, with pin_memory() of the objects that define it, other than tensors."""
    return map_leaves(_pinned, data)


class BaseIterator:
    """Iterates a loader once, or several times if its workers are persistent."""

    def __init__(self, loader: DataLoader):
        self._options = Options.of(loader)
        self._index_sampler, self._pin_memory = loader._index_sampler, loader.pin_memory
        self._dataset, self._num_workers = loader.dataset, loader.num_workers
        self._indices: Iterator = iter(self._index_sampler)
        self._base_seed = numbers_of(loader.generator).seed()
        if loader.num_workers == 0 and loader.generator is not None and isinstance(loader.dataset, IterDataPipe):
            seed(loader.dataset, self._base_seed)
        keep_freed_memory()
        self._length: int | None = None
        self._begin_counting(loader)

    def _begin_counting(self, loader: DataLoader) -> None:
        self._length, self._yielded = loader._IterableDataset_len_called, 0

    def __iter__(self):
        return self

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self):
        raise NotImplementedError("{} cannot be pickled", self.__class__.__name__)

    def _next_data(self) -> Any:
        raise NotImplementedError

    def __next__(self) -> Any:
        data = self._next_data()
        self._yielded += 1
        if self._options.iterable and self._length is not None and self._yielded > self._length:
            self._warn_of_length()
        return pin_memory(data) if self._pin_memory else data

    def _warn_of_length(self) -> None:
        text = (
            f"Length of IterableDataset {self._dataset} was reported to be {self._length}"
            f"(when accessing len(dataloader)), but {self._yielded} samples have been fetched. "
        )
        if self._num_workers > 0:
            text += (
                "For multiprocessing data-loading, this could be caused by not properly configuring the IterableDataset "
                "replica at each worker: see get_worker_info."
            )
        warnings.warn(text, stacklevel=3)


class SerialIterator(BaseIterator):
    """Loads batches in the calling thread, `ahead` of them before they are requested."""

    def __init__(self, loader: DataLoader, ahead: int = 0):
        super().__init__(loader)
        if loader.timeout:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        self._fetch = Fetch(self._options)
        self._ahead = ahead
        self._loaded: deque[Future] = deque()

    def _load_later(self) -> Future:
        """The next batch, or the error that its loading raised."""
        result: Future = Future()
        try:
            result.set_result(self._fetch(next(self._indices), collate_later))
        except StopIteration:
            result.set_exception(EOFError())
            self._ended = True
        except Exception as error:
            result.set_exception(error)
        return result

    _ended = False

    def _next_data(self) -> Any:
        if self._ahead == 0:
            return self._fetch(next(self._indices))
        while len(self._loaded) <= self._ahead and not self._ended:
            self._loaded.append(self._load_later())
        first = self._loaded.popleft() if self._loaded else None
        if first is None or (self._ended and not self._loaded and isinstance(first.exception(), EOFError)):
            raise StopIteration
        return stack_now(first.result())


@dataclass
class _Request:
    """A task that was sent. The worker is None if the sampler has raised the error that is the result."""

    number: int | None
    index: Any
    result: Result | None = None


class WorkerIterator(BaseIterator):
    """Returns batches that workers have loaded ahead, by default in the order of the sampler."""

    def __init__(self, loader: DataLoader):
        super().__init__(loader)
        self._persistent, self._timeout, self._in_order = loader.persistent_workers, loader.timeout, loader.in_order
        self._prefetch = loader.prefetch_factor
        self._results: queue.SimpleQueue = queue.SimpleQueue()
        self._epoch, self._workers, self._broken = 0, [], None
        self._ended: set[int] = set()  # workers whose processes have ended
        method = choose(loader, self._options)
        _connection.connection()  # opened by this thread, not by those that upload batches
        context = None if method == THREADS else method
        setup = Setup(
            self._options, 0, loader.num_workers, self._base_seed, self._init_fn(loader),
            context is not None and context.get_start_method() == "fork", _connection.environment, os.getpid(),
        )  # fmt: skip
        _live.add(self)
        self._setups = [replace(setup, number=i) for i in range(loader.num_workers)]
        try:
            for each in self._setups:
                self._workers.append(self._start(each, context))
        except BaseException:
            self._shutdown()
            raise
        self._begin()

    def _init_fn(self, loader: DataLoader) -> Callable | None:
        """What each worker calls at its start."""
        function = loader.worker_init_fn
        if isinstance(loader.dataset, (IterDataPipe, MapDataPipe)):
            return WorkerSetting(function, self._base_seed, loader.num_workers)
        return function

    def _start(self, setup: Setup, context) -> ProcessWorker | ThreadWorker:
        if context is None:
            return ThreadWorker(setup, self._results)
        inherited = [worker.fileno() for worker in self._workers]
        return ProcessWorker(setup, context, self._results, inherited)

    def restart(self, loader: DataLoader) -> None:
        """Begins the next epoch with the same workers."""
        self._epoch += 1
        self._indices = iter(self._index_sampler)
        self._begin_counting(loader)
        for worker in self._workers:
            worker.begin_epoch()
        self._begin()

    @property
    def is_broken(self) -> bool:
        """Whether the workers have ended because of an error."""
        return self._broken is not None

    def _begin(self) -> None:
        count = len(self._workers)
        self._requests: dict[int, _Request] = {}
        self._sent = self._received = self._next_worker = 0
        self._active, self._outstanding, self._delivered = [True] * count, [0] * count, [0] * count
        for _ in range(self._prefetch * count):
            self._request()

    # ---- Requests

    def _choose_worker(self) -> int | None:
        """The next active worker, in turn; without in_order one that has fewer requests than its share."""
        share = self._prefetch * len(self._workers) // max(1, sum(self._active))
        for _ in self._workers:
            number = self._next_worker
            self._next_worker = (number + 1) % len(self._workers)
            if self._active[number] and (self._in_order or self._outstanding[number] < share):
                return number
        return None

    def _request(self) -> None:
        """Requests the sampler's next batch. Its error is raised in the place of that batch."""
        try:
            index = next(self._indices)
        except StopIteration:
            return
        except Exception as error:
            failed = Result(None, self._epoch, self._sent, ERROR, error)
            self._requests[self._sent] = _Request(None, None, failed)
            self._sent += 1
            return
        number = self._choose_worker()
        if number is None:
            return
        self._requests[self._sent] = _Request(number, index)
        self._outstanding[number] += 1
        self._workers[number].send(Task(self._epoch, self._sent, index))
        self._sent += 1

    def _process(self, result: Result, number: int | None) -> Any:
        """The batch of a result; sends another request in place of the completed one."""
        if number is not None:
            self._outstanding[number] -= 1
            self._delivered[number] += 1
            self._request()
        if result.kind == ERROR:
            if isinstance(result.value, ExceptionWrapper):
                result.value.reraise()
            raise result.value
        return stack_now(result.value) if isinstance(result.worker, ThreadWorker) else result.value

    # ---- Results

    def _take(self) -> Result | None:
        """The next result of this epoch; None if the state of the workers has changed."""
        deadline = time.monotonic() + self._timeout if self._timeout else None
        while True:
            try:
                result = self._results.get(timeout=None if deadline is None else max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds") from None
            if result.worker not in self._workers:
                continue  # result of a process that threads have replaced
            if result.kind == SESSION_NEEDED:
                self._use_threads()
                return None
            if result.kind == DIED:
                self._ended.add(self._workers.index(result.worker))
                return None
            if result.epoch == self._epoch and result.number in self._requests:
                return result

    def _check_worker(self, number: int) -> None:
        """Raises an error if a worker has ended."""
        if number not in self._ended:
            return
        worker = self._workers[number]
        cause = RuntimeError(worker.describe_exit())
        self._broken = f"DataLoader worker (pid(s) {worker.identifier}) exited unexpectedly"
        self._shutdown()
        raise RuntimeError(self._broken) from cause

    def _use_threads(self) -> None:
        """Replaces the worker processes by threads, which repeat the requests in progress."""
        started = [i for i, count in enumerate(self._delivered) if count]
        if self._options.iterable and started:
            self._broken = (
                f"[DataLoader] worker process {started[0]} used a tensor after its first batch; create tensors outside of "
                "IterableDataset, or set multiprocessing_context='thread', 'spawn' or 'forkserver'"
            )
            self._shutdown()
            raise RuntimeError(self._broken)
        warnings.warn(_SESSION_NEEDED_WARNING, stacklevel=5)
        processes, waiting = self._workers, {n: r for n, r in self._requests.items() if r.result is None}
        self._workers = [ThreadWorker(setup, self._results) for setup in self._setups]
        _stop(processes)
        for number, request in waiting.items():
            if request.number is not None and self._active[request.number]:
                self._workers[request.number].send(Task(self._epoch, number, request.index))

    def _next_data(self) -> Any:
        if self._broken is not None:
            raise RuntimeError(self._broken)
        while True:
            request = self._first_request()
            if request.result is not None:
                del self._requests[self._received]
                self._received += 1
                return self._process(request.result, request.number)
            self._check_worker(request.number)
            result = self._take()
            if result is None:
                continue
            request = self._requests[result.number]
            if result.kind == END:
                self._end_of(request.number)
            elif result.number == self._received or not self._in_order:
                del self._requests[result.number]
                self._received += result.number == self._received
                return self._process(result, request.number)
            else:
                request.result = result

    def _first_request(self) -> _Request:
        """The request of the next batch. Raises StopIteration after the last one."""
        while self._received < self._sent:
            request = self._requests.get(self._received)
            if request is not None and (request.result is not None or self._active[request.number]):
                return request
            self._requests.pop(self._received, None)  # already returned, or sent to a worker whose samples have ended
            self._received += 1
        if not self._persistent:
            self._shutdown()
        raise StopIteration

    def _end_of(self, number: int) -> None:
        """Ends a worker whose IterableDataset has no more samples, in this epoch if it is persistent."""
        self._active[number] = False
        if not self._persistent:
            self._workers[number].begin_stop()
        self._request()

    # ---- End

    def _shutdown(self) -> None:
        """Ends the workers."""
        _live.discard(self)
        workers, self._workers = self._workers, []
        _stop(workers)
        self._results, self._requests = queue.SimpleQueue(), {}  # drops the batches that were loaded ahead

    def _shutdown_workers(self) -> None:
        """Ends the workers. Called by libraries; otherwise they end with the iterator."""
        self._shutdown()

    def __del__(self):
        if hasattr(self, "_workers"):
            self._shutdown()


def _stop(workers: list) -> None:
    """Ends workers; those whose batch takes more than a few seconds are terminated."""
    for worker in workers:
        worker.begin_stop()
    deadline = time.monotonic() + CHECK_SECONDS
    for worker in workers:
        worker.finish_stop(deadline - time.monotonic())


_live: weakref.WeakSet[WorkerIterator] = weakref.WeakSet()


@atexit.register  # registered after _connection's handler, so that it runs before the session ends
def _shutdown_all() -> None:
    for iterator in list(_live):
        iterator._shutdown()
