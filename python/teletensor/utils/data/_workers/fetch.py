"""Fetch: loads the batches of a data set."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..collate import default_collate
from ..dataset import get_items


class DatasetKind:
    """The kinds of data sets: by index, or iterable."""

    Map = 0
    Iterable = 1


@dataclass(frozen=True)
class Options:
    """The data set and options of a loader. `gather` builds the batch for a list of indices in the engine."""

    dataset: Any
    iterable: bool
    batched: bool
    drop_last: bool
    collate_fn: Callable
    gather: Callable | None = None

    @classmethod
    def of(cls, loader: Any) -> Options:
        """The options of a DataLoader, or of a library's object with the attributes that PyTorch's iterators read."""
        iterable, gather = loader._dataset_kind == DatasetKind.Iterable, getattr(loader, "_gather", None)
        return cls(loader.dataset, iterable, loader._auto_collation, loader.drop_last, loader.collate_fn, gather)


@functools.cache
def keep_freed_memory() -> None:
    """Makes glibc's malloc reuse the memory of freed images and arrays instead of returning it to the system, because the
    system clears each page that it hands out again. When a block is freed that has its own mapping, malloc raises the size
    from which blocks have their own mappings to that of the block, at most 32 MiB, and the amount of free memory that it
    keeps to twice as much. Other allocators are not affected.
    """
    bytearray(31 << 20)


class Fetch:
    """Loads batches of indices, or the next ones of an IterableDataset."""

    def __init__(self, options: Options):
        self._options = options
        self._samples = iter(options.dataset) if options.iterable else None
        self._ended = False

    def samples(self, index) -> Any:
        """The samples of a batch, not collated. Raises StopIteration after the last one of an IterableDataset."""
        options = self._options
        if self._samples is None:
            return get_items(options.dataset, index) if options.batched else options.dataset[index]
        if self._ended:
            raise StopIteration
        if not options.batched:
            return next(self._samples)
        batch: list = []
        for _ in index:
            try:
                batch.append(next(self._samples))
            except StopIteration:
                self._ended = True
                break
        if not batch or (options.drop_last and len(batch) < len(index)):
            raise StopIteration
        return batch

    def __call__(self, index, collate: Callable | None = None) -> Any:
        """The batch. `collate` replaces default_collate."""
        if self._options.gather is not None:
            return self._options.gather(index)
        function = self._options.collate_fn
        if collate is not None and function is default_collate:
            function = collate
        return function(self.samples(index))
