"""DataLoader: batches of a data set, prepared ahead by threads."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYetError
from dataclasses import dataclass

from ..._C import Tensor
from ..._random import initial_seed
from .dataset import Dataset, IterableDataset, TensorDataset
from .sampler import BatchSampler, RandomSampler, SequentialSampler


def default_collate(batch):
    """Stacks tensors, arrays and numbers; recurses into tuples, lists and dicts."""
    from ... import stack, tensor

    first = batch[0]
    if isinstance(first, Tensor):
        return stack(batch, 0)
    if hasattr(first, "__array_interface__"):
        import numpy as np

        return tensor(np.stack(batch))
    if isinstance(first, (bool, int, float)):
        return tensor(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, dict):
        return {key: default_collate([sample[key] for sample in batch]) for key in first}
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(default_collate(samples) for samples in zip(*batch)))
    if isinstance(first, (tuple, list)):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        return [default_collate(samples) for samples in zip(*batch)]
    raise TypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; "
        f"found {type(first).__name__}"
    )


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
    if prefetch_factor is not None and (num_workers == 0 or prefetch_factor < 0):
        raise ValueError(f"expected num_workers > 0 and prefetch_factor >= 0, got {num_workers} and {prefetch_factor}")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")
    if context is not None and num_workers == 0:
        raise ValueError("multiprocessing_context can only be used with multi-process loading (num_workers > 0)")


class DataLoader:
    """Batches of a data set; see torch.utils.data.DataLoader.

    ``num_workers`` threads prepare batches ahead. Threads suffice, because the client sends samples to the engine
    instead of computing on them. A TensorDataset's batches are indexed in the engine.
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
            for name, given in (("shuffle", shuffle), ("sampler", sampler), ("batch_sampler", batch_sampler)):
                if given:
                    raise ValueError(f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={given}")
        self.generator, self.pin_memory, self.in_order, self.timeout = generator, pin_memory, in_order, timeout
        self.pin_memory_device, self.persistent_workers = pin_memory_device, persistent_workers
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.num_workers, self.prefetch = num_workers, prefetch_factor or 2
        self.collate_fn, self.worker_init_fn = collate_fn or default_collate, worker_init_fn
        self._whole_batches = isinstance(dataset, TensorDataset) and collate_fn is None
        self.sampler = self.batch_sampler = None
        if not isinstance(dataset, IterableDataset):
            if batch_sampler is None:
                if sampler is None:
                    sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
                self.sampler = sampler
                batch_sampler = BatchSampler(self.sampler, batch_size, drop_last) if batch_size is not None else None
            self.batch_sampler = batch_sampler

    def _fetch(self, indices: list[int]):
        if self._whole_batches:
            return list(self.dataset.__getitems__(indices))
        return self.collate_fn([self.dataset[i] for i in indices])

    def _iterable_batches(self):
        batch = []
        for sample in self.dataset:
            batch.append(sample)
            if len(batch) == self.batch_size:
                yield self.collate_fn(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.collate_fn(batch)

    def __iter__(self):
        if isinstance(self.dataset, IterableDataset):
            return self._iterable_batches() if self.batch_size is not None else iter(self.dataset)
        if self.batch_sampler is None:
            return (self.dataset[i] for i in self.sampler)
        if self.num_workers > 0:
            return self._prefetch()
        return (self._fetch(indices) for indices in self.batch_sampler)

    def _prefetch(self):
        numbers = itertools.count()

        def begin() -> None:
            number = next(numbers)
            _worker.info = WorkerInfo(number, self.num_workers, initial_seed() + number, self.dataset)
            if self.worker_init_fn is not None:
                self.worker_init_fn(number)

        with ThreadPoolExecutor(self.num_workers, "loader", begin) as pool:
            waiting: deque = deque()
            for indices in self.batch_sampler:
                waiting.append(pool.submit(self._fetch, indices))
                if len(waiting) >= self.num_workers * self.prefetch:
                    yield self._wait(waiting.popleft())
            while waiting:
                yield self._wait(waiting.popleft())

    def _wait(self, batch: Future):
        try:
            return batch.result(self.timeout or None)
        except NotYetError:
            if batch.done():  # the data set raised this error
                raise
            raise RuntimeError(f"DataLoader timed out after {self.timeout} seconds") from None

    def __len__(self) -> int:
        if self.batch_sampler is None:
            return len(self.dataset)
        return len(self.batch_sampler)
