"""DataLoader: batches of a data set, loaded ahead by worker processes."""

from __future__ import annotations

import os
import warnings
from typing import Any, Generic

from ... import _C
from ..._lazy import set_module
from ._workers.choice import check_context
from ._workers.fetch import DatasetKind
from ._workers.info import WorkerInfo, get_worker_info
from ._workers.iterators import SerialIterator, WorkerIterator
from .collate import default_collate, default_convert
from .datapipes._settings import with_shuffle
from .datapipes.datapipe import IterDataPipe
from .dataset import Dataset, IterableDataset, T_co, find_gather
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader", "WorkerInfo", "get_worker_info", "prefetch"]

_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class _InfiniteConstantSampler(Sampler):
    """The sampler of an IterableDataset, which has no indices."""

    def __iter__(self):
        while True:
            yield None


def _check_workers(num_workers: int, timeout: float, prefetch_factor, persistent_workers: bool, context) -> None:
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if prefetch_factor is not None and num_workers == 0:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable "
            "multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if prefetch_factor == 0:
        raise ValueError("[DataLoader] expected prefetch_factor to be at least 1, got 0: no batch would be loaded")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")
    if context is not None and num_workers == 0:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got num_workers=0"
        )
    check_context(context)


def _check_iterable(shuffle, sampler, batch_sampler) -> None:
    for name, given in (("shuffle", shuffle or None), ("sampler", sampler), ("batch_sampler", batch_sampler)):
        if given is not None:
            raise ValueError(f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={given}")


class DataLoader(Generic[T_co]):
    """Batches of a data set; see torch.utils.data.DataLoader.

    ``num_workers`` processes load ``prefetch_factor`` batches each ahead of use (default: 2). They need no connection to
    the engine: samples that are NumPy arrays and numbers are collated in shared memory, and a thread of this process sends
    each batch to the engine in the background, so that no step waits for an upload. With ``num_workers=0`` a batch is
    loaded when it is requested; prefetch() loads ahead in the calling thread. Batches of a TensorDataset, a PinnedDataset
    or a Subset of one are indexed in the engine.

    A forked process cannot use the session of its parent. A ``collate_fn`` that makes tensors is called in this process.
    If the data set holds or makes tensors, threads of this process load it. With ``multiprocessing_context="spawn"`` or
    ``"forkserver"`` a worker opens a session of its own at its first tensor, and its tensors are sent by value;
    ``"thread"`` selects threads.

    Workers of an IterDataPipe share its order: sharding_filter() gives each one its part, and without it each yields all
    items. ``shuffle`` switches the pipe's shufflers on or off.

    Batch ``k`` is loaded by worker ``k % num_workers``; the worker's seeds are those of PyTorch. An error of the data set is
    raised in the place of its batch, with the worker's traceback. ``pin_memory`` calls ``pin_memory()`` of batches that
    define it; a tensor's has no effect.
    """

    _initialized = False

    def __init__(
        self, dataset: Dataset, batch_size: int | None = 1, shuffle: bool | None = None, sampler=None, batch_sampler=None,
        num_workers: int = 0, collate_fn=None, pin_memory: bool = False, drop_last: bool = False, timeout: float = 0,
        worker_init_fn=None, multiprocessing_context=None, generator=None, *, prefetch_factor: int | None = None,
        persistent_workers: bool = False, pin_memory_device: str = "", in_order: bool = True,
    ):  # fmt: skip
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers, multiprocessing_context)
        self._dataset_kind = DatasetKind.Iterable if isinstance(dataset, IterableDataset) else DatasetKind.Map
        if isinstance(dataset, IterDataPipe):
            dataset = with_shuffle(dataset, shuffle)
            shuffle = None
        if self._dataset_kind == DatasetKind.Iterable:
            _check_iterable(shuffle, sampler, batch_sampler)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        self.generator, self.pin_memory, self.in_order, self.timeout = generator, pin_memory, in_order, timeout
        self.pin_memory_device, self.persistent_workers = pin_memory_device, persistent_workers
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self.worker_init_fn, self.multiprocessing_context = worker_init_fn, multiprocessing_context
        if pin_memory_device:
            _C.device(pin_memory_device)  # raises if the name is invalid
        if sampler is None:
            sampler = self._default_sampler(shuffle)
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.sampler, self.batch_sampler = sampler, batch_sampler
        self.collate_fn = collate_fn or (default_collate if self._auto_collation else default_convert)
        self._gather = find_gather(dataset) if self._auto_collation and self.collate_fn is default_collate else None
        self._iterator: WorkerIterator | None = None  # of persistent workers
        self._IterableDataset_len_called: int | None = None
        self._initialized = True
        self.check_worker_number_rationality()

    def __setattr__(self, name: str, value: Any) -> None:
        if self._initialized and name in _FIXED:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    def _default_sampler(self, shuffle) -> Sampler:
        if self._dataset_kind == DatasetKind.Iterable:
            return _InfiniteConstantSampler()
        return RandomSampler(self.dataset, generator=self.generator) if shuffle else SequentialSampler(self.dataset)

    @property
    def _auto_collation(self) -> bool:
        """Whether samples are batched."""
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        """The sampler of requests: lists of indices, or indices if samples are not batched."""
        return self.batch_sampler if self._auto_collation else self.sampler

    def _get_iterator(self):
        """A new iterator."""
        return SerialIterator(self) if self.num_workers == 0 else WorkerIterator(self)

    def __iter__(self):
        if not self.persistent_workers:
            return self._get_iterator()
        if self._iterator is None or self._iterator.is_broken:
            self._iterator = self._get_iterator()
        else:
            self._iterator.restart(self)
        return self._iterator

    def __len__(self) -> int:
        """The number of batches; for an IterableDataset computed from its length, as if one worker read all samples."""
        if self._dataset_kind != DatasetKind.Iterable:
            return len(self._index_sampler)
        samples = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return samples
        return samples // self.batch_size if self.drop_last else -(-samples // self.batch_size)

    def check_worker_number_rationality(self) -> None:
        """Warns if there are more workers than CPUs that this process may use."""
        cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        if self.num_workers > cpus:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number of worker "
                f"in current system is {cpus}, which is smaller than what this DataLoader is going to create. Please be "
                "aware that excessive worker creation might get DataLoader running slow or even freeze, lower the worker "
                "number to avoid potential slowness/freeze if necessary.",
                stacklevel=3,
            )


class prefetch:  # noqa: N801 - used as a function
    """Iterates a DataLoader with ``num_workers=0`` some batches ahead: ``for x, y in prefetch(loader): ...``

    Before it returns a batch, it loads the following ``batches`` in the calling thread, which sends them to the engine in
    the background. Batches and their order are the loader's, and an error is raised in the place of its batch. Only
    state that the data set shares with the loop's body can differ, because the data set runs earlier: for example a
    generator from which both draw.

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


set_module("teletensor.utils.data.dataloader", DataLoader)
