"""Pipes with keys that change, group and join the items of other pipes."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .._decorator import functional_datapipe
from .._shuffling import Shuffling
from ..datapipe import DataChunk, IterDataPipe, MapDataPipe


def _same(item: Any) -> Any:
    return item


class SequenceWrapper(MapDataPipe):
    """A pipe of a list or a dict, of which it has a copy if `deepcopy` is True and it can be copied."""

    def __init__(self, sequence: Any, deepcopy: bool = True) -> None:
        self.sequence = sequence
        if deepcopy:
            try:
                self.sequence = copy.deepcopy(sequence)
            except TypeError:
                pass

    def __getitem__(self, index: Any) -> Any:
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)


@functional_datapipe("map")
class Mapper(MapDataPipe):
    """Applies a function to each item."""

    def __init__(self, datapipe: MapDataPipe, fn: Callable = _same) -> None:
        self.datapipe, self.fn = datapipe, fn

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])

    def __len__(self) -> int:
        return len(self.datapipe)  # type: ignore[arg-type]


@functional_datapipe("batch")
class Batcher(MapDataPipe):
    """Lists of `batch_size` items with consecutive indices; the last one may be shorter."""

    def __init__(self, datapipe: MapDataPipe, batch_size: int, drop_last: bool = False, wrapper_class: type[DataChunk] = DataChunk) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size, self.drop_last, self.wrapper_class = datapipe, batch_size, drop_last, wrapper_class

    def __getitem__(self, index: int) -> DataChunk:
        if not 0 <= index < len(self):
            raise IndexError(f"Index {index} is out of bound.")
        end = min((index + 1) * self.batch_size, len(self.datapipe))  # type: ignore[arg-type]
        return self.wrapper_class([self.datapipe[i] for i in range(index * self.batch_size, end)])

    def __len__(self) -> int:
        count = len(self.datapipe)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


def _check_pipes(pipes: tuple) -> None:
    if not pipes:
        raise ValueError("Expected at least one DataPipe, but got nothing")
    if not all(isinstance(p, MapDataPipe) for p in pipes):
        raise TypeError("Expected all inputs to be `MapDataPipe`")
    if not all(hasattr(p, "__len__") for p in pipes):
        raise TypeError("Expected all inputs be `Sized`")


@functional_datapipe("concat")
class Concater(MapDataPipe):
    """The items of the first pipe, then those of the next one, and so on."""

    def __init__(self, *datapipes: MapDataPipe) -> None:
        _check_pipes(datapipes)
        self.datapipes = datapipes

    def __getitem__(self, index: int) -> Any:
        offset = 0
        for pipe in self.datapipes:
            if index - offset < len(pipe):  # type: ignore[arg-type]
                return pipe[index - offset]
            offset += len(pipe)  # type: ignore[arg-type]
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self) -> int:
        return sum(map(len, self.datapipes))  # type: ignore[arg-type]


@functional_datapipe("zip")
class Zipper(MapDataPipe):
    """Tuples of the items of several pipes with one index."""

    def __init__(self, *datapipes: MapDataPipe) -> None:
        _check_pipes(datapipes)
        self.datapipes = datapipes

    def __getitem__(self, index: Any) -> tuple:
        return tuple(pipe[index] for pipe in self.datapipes)

    def __len__(self) -> int:
        return min(map(len, self.datapipes))  # type: ignore[arg-type]


class Shuffler(Shuffling, IterDataPipe):
    """Yields the items in random order, once each; the numbers depend on torch.manual_seed() or set_seed().

    Args:
        indices: the keys of the items; by default 0 to the length.
    """

    def __init__(self, datapipe: MapDataPipe, *, indices: Sequence | None = None) -> None:
        self.datapipe = datapipe
        self.indices = list(range(len(datapipe))) if indices is None else indices  # type: ignore[arg-type]
        self._order: list = []
        self._rng = random.Random()  # noqa: S311 - no secrets

    def reset(self) -> None:
        if not self._enabled:
            self._order = list(self.indices)
            return
        self._rng.seed(self._take_seed())
        self._order = self._rng.sample(self.indices, len(self.indices))[::-1]

    def __iter__(self) -> Iterator:
        for index in self._order:
            yield self.datapipe[index]

    def __len__(self) -> int:
        return len(self.datapipe)  # type: ignore[arg-type]


MapDataPipe.register_datapipe_as_function("shuffle", Shuffler)
