"""DataLoader: batches of a data set, prepared ahead by threads."""

from __future__ import annotations

import contextlib
import copy
import functools
import itertools
import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYetError
from dataclasses import dataclass

from ..._random import initial_seed
from .collate import default_collate, default_convert
from .dataset import Dataset, IterableDataset, TensorDataset
from .sampler import BatchSampler, RandomSampler, SequentialSampler


@dataclass(frozen=True)
class WorkerInfo:
    """The identity of a DataLoader's worker."""

    id: int
    num_workers: int
    seed: int
    dataset: Dataset


_worker = threading.local()


def get_worker_info() -> WorkerInfo | None:
    """The WorkerInfo of the calling thread; None outside a loader's threads."""
    return getattr(_worker, "info", None)


def _check_workers(num_workers: int, timeout: float, prefetch_factor, persistent_workers: bool, context) -> None:
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if prefetch_factor is not None and num_workers == 0:
        raise ValueError("prefetch_factor option could only be specified in multiprocessing: expected num_workers > 0")
    if prefetch_factor is not None and prefetch_factor <= 0:
        raise ValueError(f"prefetch_factor option should be positive, got {prefetch_factor}")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")
    if context is not None and num_workers == 0:
        raise ValueError("multiprocessing_context can only be used with multi-process loading (num_workers > 0)")


class DataLoader:
    """Batches of a data set; see torch.utils.data.DataLoader.

    ``num_workers`` threads prepare batches ahead. Threads suffice, because the client sends samples to the engine
    instead of computing on them. A TensorDataset's batches are indexed in the engine. Each worker iterates its own shallow
    copy of an IterableDataset, whose ``__iter__`` or ``worker_init_fn`` selects the worker's share by get_worker_info().
    """

    def __init__(
        self, dataset: Dataset, batch_size: int | None = 1, shuffle: bool = False, sampler=None, batch_sampler=None,
        num_workers: int = 0, collate_fn=None, pin_memory: bool = False, drop_last: bool = False, timeout: float = 0,
        worker_init_fn=None, multiprocessing_context=None, generator=None, *, prefetch_factor: int | None = None,
        persistent_workers: bool = False, pin_memory_device: str = "", in_order: bool = True,
    ):  # fmt: skip
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers, multiprocessing_context)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if isinstance(dataset, IterableDataset):
            for name, given in (("shuffle", shuffle or None), ("sampler", sampler), ("batch_sampler", batch_sampler)):
                if given is not None:
                    raise ValueError(f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={given}")
        self.generator, self.pin_memory, self.in_order, self.timeout = generator, pin_memory, in_order, timeout
        self.pin_memory_device, self.persistent_workers = pin_memory_device, persistent_workers
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.num_workers, self.prefetch = num_workers, prefetch_factor or 2
        self.worker_init_fn = worker_init_fn
        self.sampler = self.batch_sampler = None
        if isinstance(dataset, IterableDataset):
            if batch_size is not None and batch_size <= 0:
                raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        elif batch_sampler is not None:
            self.batch_sampler = batch_sampler
        else:
            if sampler is None:
                sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
            self.sampler = sampler
            self.batch_sampler = BatchSampler(sampler, batch_size, drop_last) if batch_size is not None else None
        batched = batch_size is not None or batch_sampler is not None
        self.collate_fn = collate_fn or (default_collate if batched else default_convert)
        self._whole_batches = batched and collate_fn is None and isinstance(dataset, TensorDataset)

    @property
    def _index_sampler(self):
        """The sampler of _fetch's arguments: lists of indices, or indices if samples are not batched."""
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def _fetch(self, index):
        """The batch of a list of indices, or the sample of an index."""
        if self.batch_sampler is None:
            return self.collate_fn(self.dataset[index])
        if self._whole_batches:
            return list(self.dataset.__getitems__(index))
        if hasattr(self.dataset, "__getitems__"):
            return self.collate_fn(self.dataset.__getitems__(index))
        return self.collate_fn([self.dataset[i] for i in index])

    def _iterate(self, dataset: IterableDataset):
        """Yields the batches, or the samples if they are not batched, of an IterableDataset."""
        if self.batch_size is None:
            yield from (self.collate_fn(sample) for sample in dataset)
            return
        samples = iter(dataset)
        while batch := list(itertools.islice(samples, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield self.collate_fn(batch)

    def __iter__(self):
        if isinstance(self.dataset, IterableDataset):
            return self._iterate_ahead() if self.num_workers > 0 else self._iterate(self.dataset)
        return self._fetch_ahead() if self.num_workers > 0 else (self._fetch(index) for index in self._index_sampler)

    def _begin_worker(self, number: int, dataset: Dataset) -> None:
        _worker.info = WorkerInfo(number, self.num_workers, initial_seed() + number, dataset)
        if self.worker_init_fn is not None:
            self.worker_init_fn(number)

    def _fetch_ahead(self):
        numbers = itertools.count()

        def begin() -> None:
            self._begin_worker(next(numbers), self.dataset)

        with ThreadPoolExecutor(self.num_workers, "loader", begin) as pool:
            waiting: deque = deque()
            for index in self._index_sampler:
                waiting.append(pool.submit(self._fetch, index))
                if len(waiting) >= self.num_workers * self.prefetch:
                    yield self._wait(waiting.popleft())
            while waiting:
                yield self._wait(waiting.popleft())

    def _iterate_ahead(self):
        """Yields one batch of each worker in turn. A worker is one thread that iterates a copy of the dataset."""
        end = object()
        with contextlib.ExitStack() as stack:
            workers: deque = deque()  # of (the function that requests the worker's next batch, requested batches)
            for number in range(self.num_workers):
                dataset = copy.copy(self.dataset)
                pool = stack.enter_context(ThreadPoolExecutor(1, "loader", self._begin_worker, (number, dataset)))
                request = functools.partial(pool.submit, next, self._iterate(dataset), end)
                workers.append((request, deque(request() for _ in range(self.prefetch))))
            while workers:
                request, requested = workers.popleft()
                batch = self._wait(requested.popleft())
                if batch is not end:
                    requested.append(request())
                    workers.append((request, requested))
                    yield batch

    def _wait(self, batch: Future):
        try:
            return batch.result(self.timeout or None)
        except NotYetError:
            if batch.done():  # the data set raised this error
                raise
            raise RuntimeError(f"DataLoader timed out after {self.timeout} seconds") from None

    def __len__(self) -> int:
        """The number of batches; for an IterableDataset computed from its length, as if one worker read all samples."""
        if not isinstance(self.dataset, IterableDataset):
            return len(self._index_sampler)
        samples = len(self.dataset)
        if self.batch_size is None:
            return samples
        return samples // self.batch_size if self.drop_last else -(-samples // self.batch_size)
