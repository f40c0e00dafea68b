"""The iterators of a DataLoader."""

from __future__ import annotations

import copy
import random
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYetError
from concurrent.futures import wait as wait_for_futures
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..._C import Tensor
from ..._random import initial_seed
from .collate import collate, default_collate, map_leaves, stack
from .dataset import Dataset, IterableDataset

if TYPE_CHECKING:
    from .loader import DataLoader


@dataclass(frozen=True)
class WorkerInfo:
    """The identity of a DataLoader's worker."""

    id: int
    num_workers: int
    seed: int
    dataset: Dataset


_worker = threading.local()
_END = object()  # what a fetch returns after the last batch


def get_worker_info() -> WorkerInfo | None:
    """The WorkerInfo of the calling thread; None outside a loader's threads."""
    return getattr(_worker, "info", None)


class _LaterStack:
    """Tensors that are stacked when their batch is used.

    Stacking uses the tensors, so the engine would wait for their bytes before it executes what is issued later.
    """

    def __init__(self, tensors: list[Tensor]):
        self.tensors = tensors


class _Fetch:
    """Loads batches of a loader: of a list of indices, or the next ones of an IterableDataset."""

    def __init__(self, loader: DataLoader, dataset: Dataset, ahead: bool):
        self._loader, self._dataset, self._ahead = loader, dataset, ahead
        self._samples = iter(dataset) if isinstance(dataset, IterableDataset) else None
        self._ended = False

    def _collate(self, samples):
        function = self._loader.collate_fn
        return collate(samples, _LaterStack) if self._ahead and function is default_collate else function(samples)

    def __call__(self, index=None):
        """The batch; _END after the last one of an IterableDataset."""
        if self._samples is not None:
            return self._next()
        loader, dataset = self._loader, self._dataset
        if loader.batch_sampler is None:
            return loader.collate_fn(dataset[index])
        if loader._gather is not None:
            return loader._gather(index)
        if callable(getattr(dataset, "__getitems__", None)):
            return self._collate(dataset.__getitems__(index))
        return self._collate([dataset[i] for i in index])

    def _next(self):
        loader = self._loader
        if loader.batch_size is None:
            sample = next(self._samples, _END)
            return sample if sample is _END else loader.collate_fn(sample)
        batch: list = []
        while not self._ended and len(batch) < loader.batch_size:
            sample = next(self._samples, _END)
            self._ended = sample is _END
            if not self._ended:
                batch.append(sample)
        if not batch or (loader.drop_last and len(batch) < loader.batch_size):
            return _END
        return self._collate(batch)


def _pinned(data):
    if isinstance(data, (Tensor, str, bytes)) or not hasattr(data, "pin_memory"):
        return data
    return data.pin_memory()


class _Iterator:
    """What the iterators have in common.

    An iterator has its own copy of the loader's options, so that a loader that keeps its iterator is not part of a cycle
    and is freed with its last reference.
    """

    def __init__(self, loader: DataLoader):
        self._loader = copy.copy(loader)
        self._loader._iterator = None

    def __iter__(self):
        return self

    def __len__(self) -> int:
        return len(self._loader)

    def _deliver(self, batch, ahead: bool):
        """The batch as the user gets it."""
        if ahead and self._loader.collate_fn is default_collate:
            batch = map_leaves(lambda leaf: stack(leaf.tensors) if isinstance(leaf, _LaterStack) else leaf, batch)
        return map_leaves(_pinned, batch) if self._loader.pin_memory else batch


class SerialIterator(_Iterator):
    """Loads batches in the calling thread, `ahead` of them before they are requested."""

    def __init__(self, loader: DataLoader, ahead: int = 0):
        super().__init__(loader)
        loader = self._loader
        iterable = isinstance(loader.dataset, IterableDataset)
        self._indices = None if iterable else iter(loader._index_sampler)
        self._fetch = _Fetch(loader, loader.dataset, ahead > 0)
        self._ahead = ahead
        self._loaded: deque[Future] = deque()

    def _load(self):
        """The next batch; _END after the last one."""
        if self._indices is None:
            return self._fetch()
        for index in self._indices:
            return self._fetch(index)
        return _END

    def _load_later(self) -> Future:
        """The next batch, or the error that its loading raised."""
        result: Future = Future()
        try:
            result.set_result(self._load())
        except Exception as error:
            result.set_exception(error)
        return result

    def __next__(self):
        if self._ahead == 0:
            batch = self._load()
        else:
            while len(self._loaded) <= self._ahead:
                self._loaded.append(self._load_later())
            batch = self._loaded.popleft().result()
        if batch is _END:
            raise StopIteration
        return self._deliver(batch, self._ahead > 0)


class _Worker:
    """A thread that loads batches in the order of its tasks."""

    def __init__(self, loader: DataLoader, number: int, seed: int):
        iterable = isinstance(loader.dataset, IterableDataset)
        self._dataset = copy.copy(loader.dataset) if iterable else loader.dataset
        self._loader = loader
        self._info = WorkerInfo(number, loader.num_workers, seed, self._dataset)
        self._executor = ThreadPoolExecutor(1, f"loader-{number}")
        self._fetch: _Fetch | None = None
        self._executor.submit(self._begin)

    def _begin(self) -> None:
        self._error: Exception | None = None
        _worker.info = self._info
        try:
            if self._loader.worker_init_fn is not None:
                self._loader.worker_init_fn(self._info.id)
        except Exception as error:
            self._error = error

    def _begin_epoch(self) -> None:
        self._fetch = None

    def _load(self, *index):
        if self._error is not None:
            raise self._error
        if self._fetch is None:
            self._fetch = _Fetch(self._loader, self._dataset, ahead=True)
        return self._fetch(*index)

    def begin_epoch(self) -> None:
        """Makes the following tasks start a new iteration of an IterableDataset."""
        self._executor.submit(self._begin_epoch)

    def load(self, *index) -> Future:
        """Loads the batch of the indices, or the next batch of an IterableDataset."""
        return self._executor.submit(self._load, *index)

    def end(self, wait: bool) -> None:
        """Ends the thread after the task in progress, which is awaited if `wait`; drops the other tasks."""
        self._executor.shutdown(wait=wait, cancel_futures=True)


class WorkerIterator(_Iterator):
    """Returns batches that workers have loaded ahead."""

    def __init__(self, loader: DataLoader):
        super().__init__(loader)
        loader = self._loader
        self._tasks: deque[tuple[Future, _Worker]] = deque()
        self._timed_out = False
        generator = loader.generator
        seed = initial_seed() if generator is None else generator.initial_seed()
        base = random.Random(f"workers:{seed}:{loader._epoch}").getrandbits(62)
        self._workers = [_Worker(loader, number, base + number) for number in range(loader.num_workers)]
        self._begin()

    def restart(self) -> None:
        """Begins the next epoch with the same workers."""
        while self._tasks:
            self._tasks.popleft()[0].cancel()
        for worker in self._workers:
            worker.begin_epoch()
        self._begin()

    def _begin(self) -> None:
        loader = self._loader
        self._indices: Iterator | None = None
        if not isinstance(loader.dataset, IterableDataset):
            self._indices = iter(loader._index_sampler)
        self._next_worker = 0
        for _ in range(loader.prefetch_factor):
            for worker in self._workers:
                self._request(worker)

    def _request(self, worker: _Worker) -> None:
        """Requests the next batch; of an IterableDataset, the worker's next batch."""
        if self._indices is None:
            self._tasks.append((worker.load(), worker))
            return
        worker = self._workers[self._next_worker]
        try:
            for index in self._indices:
                self._tasks.append((worker.load(index), worker))
                self._next_worker = (self._next_worker + 1) % len(self._workers)
                return
        except Exception as error:  # of the sampler: raised in the place of its batch
            failed: Future = Future()
            failed.set_exception(error)
            self._tasks.append((failed, worker))

    def _take(self) -> tuple[Future, _Worker]:
        """The task whose batch is next."""
        if not self._loader.in_order:
            wait_for_futures([task for task, _ in self._tasks], self._loader.timeout or None, FIRST_COMPLETED)
            for i, (task, worker) in enumerate(self._tasks):
                if task.done():
                    del self._tasks[i]
                    return task, worker
        return self._tasks.popleft()

    def __next__(self):
        while self._tasks:
            task, worker = self._take()
            batch = None
            try:
                batch = task.result(self._loader.timeout or None)
            except NotYetError:
                if task.done():  # the data set raised this error
                    raise
                self._timed_out = True
                raise RuntimeError(f"DataLoader timed out after {self._loader.timeout} seconds") from None
            finally:
                if batch is not _END:
                    self._request(worker)
            if batch is not _END:
                return self._deliver(batch, ahead=True)
        if not self._loader.persistent_workers:
            self._end()
        raise StopIteration

    def _end(self) -> None:
        """Ends the workers. Batches that are being loaded are awaited, so that the data set is not used afterwards."""
        for worker in self._workers:
            worker.end(wait=not self._timed_out and get_worker_info() is None)

    def _shutdown_workers(self) -> None:
        """Ends the workers. Called by libraries; otherwise they end with the iterator."""
        self._end()

    def __del__(self):
        if hasattr(self, "_workers"):
            self._end()
