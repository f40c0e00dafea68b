"""DataLoader: batches of a data set, loaded ahead by threads."""

from __future__ import annotations

import multiprocessing
from typing import Generic, TypeVar

from ... import _C
from .collate import default_collate, default_convert
from .dataset import Dataset, IterableDataset, find_gather
from .loading import SerialIterator, WorkerInfo, WorkerIterator, get_worker_info
from .sampler import BatchSampler, RandomSampler, SequentialSampler

__all__ = ["DataLoader", "WorkerInfo", "get_worker_info", "prefetch"]


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
    if context is None:
        return
    if num_workers == 0:
        raise ValueError("multiprocessing_context can only be used with multi-process loading (num_workers > 0)")
    methods = multiprocessing.get_all_start_methods()
    if isinstance(context, str) and context not in methods:
        raise ValueError(
            f"multiprocessing_context option should specify a valid start method in {methods}, but got {context!r}"
        )
    if not isinstance(context, (str, multiprocessing.context.BaseContext)):
        raise TypeError(
            f"multiprocessing_context option should be a valid context object or a start method, but got {context!r}"
        )


T_co = TypeVar("T_co", covariant=True)


class DataLoader(Generic[T_co]):
    """Batches of a data set; see torch.utils.data.DataLoader.

    ``num_workers`` threads load ``prefetch_factor`` batches each ahead of use (default: 2) and send them to the engine in
    the background, so that no step waits for an upload. Threads suffice, because the client sends samples to the engine
    instead of computing on them. With ``num_workers=0`` a batch is loaded when it is requested; prefetch() loads ahead in
    the calling thread. Batches of a TensorDataset, a PinnedDataset or a Subset of one are indexed in the engine.

    Batch ``k`` is loaded by worker ``k % num_workers``. Each worker iterates its own shallow copy of an IterableDataset,
    whose ``__iter__`` or ``worker_init_fn`` selects the worker's share by get_worker_info(). With ``persistent_workers``
    threads and copies are kept for further epochs. An error of the data set is raised in the place of its batch.
    ``pin_memory`` calls ``pin_memory()`` of batches that define it; a tensor's has no effect.
    """

    def __init__(
        self, dataset: Dataset, batch_size: int | None = 1, shuffle: bool | None = None, sampler=None, batch_sampler=None,
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
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self.worker_init_fn, self.multiprocessing_context = worker_init_fn, multiprocessing_context
        if pin_memory_device:
            _C.device(pin_memory_device)  # raises if the name is invalid
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
        self._gather = find_gather(dataset) if batched and self.collate_fn is default_collate else None
        self._iterator: WorkerIterator | None = None  # of persistent workers
        self._epoch = 0  # number of iterators made

    @property
    def _index_sampler(self):
        """The sampler of fetch()'s arguments: lists of indices, or indices if samples are not batched."""
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def __iter__(self):
        if self.num_workers == 0:
            if self.timeout:
                raise AssertionError(f"expected timeout=0 with num_workers=0, got timeout={self.timeout}")
            return SerialIterator(self)
        self._epoch += 1
        if not self.persistent_workers:
            return WorkerIterator(self)
        if self._iterator is None:
            self._iterator = WorkerIterator(self)
        else:
            self._iterator.restart()
        return self._iterator

    def __len__(self) -> int:
        """The number of batches; for an IterableDataset computed from its length, as if one worker read all samples."""
        if not isinstance(self.dataset, IterableDataset):
            return len(self._index_sampler)
        samples = len(self.dataset)
        if self.batch_size is None:
            return samples
        return samples // self.batch_size if self.drop_last else -(-samples // self.batch_size)


class prefetch:  # noqa: N801 - used as a function
    """Iterates a DataLoader with ``num_workers=0`` some batches ahead: ``for x, y in prefetch(loader): ...``

    Before it returns a batch, it loads the following ``batches`` in the calling thread, which sends them to the engine in
    the background. Batches and their order are the loader's, and an error is raised in the place of its batch. Only what
    the data set shares with the loop's body can differ, because the data set runs earlier: for example random
    numbers that both draw from one generator.

    Args:
        loader: a DataLoader with ``num_workers=0``; other workers load ahead anyway.
        batches: number of batches that are loaded ahead.
    """

    def __init__(self, loader: DataLoader, batches: int = 2):
        if not isinstance(loader, DataLoader) or loader.num_workers > 0:
            got = f"num_workers={loader.num_workers}" if isinstance(loader, DataLoader) else type(loader).__name__
            raise ValueError(f"[prefetch] expected a DataLoader with num_workers=0, got {got}")
        if batches < 1:
            raise ValueError(f"[prefetch] expected batches to be positive, got {batches}")
        self.loader, self.batches = loader, batches

    def __iter__(self):
        return SerialIterator(self.loader, self.batches)

    def __len__(self) -> int:
        return len(self.loader)
