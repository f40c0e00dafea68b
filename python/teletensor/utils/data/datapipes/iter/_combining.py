"""Pipes that join several pipes, or divide one."""

from __future__ import annotations

import copy as copies
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe


def _check_pipes(pipes: tuple, name: str) -> None:
    if not pipes:
        raise ValueError("Expected at least one DataPipe, but got nothing")
    if not all(isinstance(p, IterDataPipe) for p in pipes):
        raise TypeError(f"Expected all inputs to be `IterDataPipe` for {name}")


def _lengths(pipe: Any, pipes: tuple) -> list[int]:
    if all(hasattr(p, "__len__") for p in pipes):
        return [len(p) for p in pipes]
    raise TypeError(f"{type(pipe).__name__} instance doesn't have valid length")


@functional_datapipe("concat")
class Concater(IterDataPipe):
    """The items of the first pipe, then those of the next one, and so on."""

    def __init__(self, *datapipes: IterDataPipe) -> None:
        _check_pipes(datapipes, "Concater")
        self.datapipes = datapipes

    def __iter__(self) -> Iterator:
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self) -> int:
        return sum(_lengths(self, self.datapipes))


@functional_datapipe("zip")
class Zipper(IterDataPipe):
    """Tuples of an item of each pipe, as long as all have one."""

    def __init__(self, *datapipes: IterDataPipe) -> None:
        _check_pipes(datapipes, "Zipper")
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[tuple]:
        yield from zip(*self.datapipes)

    def __len__(self) -> int:
        return min(_lengths(self, self.datapipes))


@functional_datapipe("mux")
class Multiplexer(IterDataPipe):
    """An item of each pipe in turn, until one has no more."""

    def __init__(self, *datapipes: IterDataPipe) -> None:
        _check_pipes(datapipes, "Multiplexer")
        self.datapipes = datapipes

    def __iter__(self) -> Iterator:
        for items in zip(*self.datapipes):
            yield from items

    def __len__(self) -> int:
        return min(_lengths(self, self.datapipes)) * len(self.datapipes)


class _Shared:
    """Reads a pipe for several pipes that take items from queues of their own.

    A pipe that is iterated again begins a new round, in which the others take part when they are iterated, too.
    """

    def __init__(self, datapipe: IterDataPipe, count: int, buffer_size: int, name: str) -> None:
        self.main, self.buffer_size, self.name = datapipe, buffer_size, name
        self.queues: list[deque] = [deque() for _ in range(count)]
        self.round, self.rounds = 0, [0] * count  # the present round, and the last one of each pipe
        self.source: Iterator | None = None

    def begin(self, place: int) -> None:
        """A pipe is iterated from the beginning of the present round, or of a new one if it has taken part in this."""
        if self.rounds[place] == self.round:
            self.round += 1
            self.source = iter(self.main)
            for queue in self.queues:
                queue.clear()
        self.rounds[place] = self.round

    def items(self, place: int, targets: Callable[[Any], list[int]], copied: Callable) -> Iterator:
        """Yields the items of one queue, which `targets` selects for each item of the main pipe."""
        queue, own = self.queues[place], self.round
        while own == self.round:
            if queue:
                yield copied(queue.popleft())
                continue
            try:
                item = next(self.source)  # type: ignore[arg-type]
            except StopIteration:
                return
            for target in targets(item):
                self.queues[target].append(item)
            if 0 <= self.buffer_size < max(map(len, self.queues)) - (1 if queue else 0):
                raise BufferError(f"{self.name} buffer overflow, buffer size {self.buffer_size} is insufficient.")
        raise RuntimeError(
            "This iterator has been invalidated, because a new iterator has been created from one of the pipes into which "
            f"{self.main!r} is divided"
        )


class _Child(IterDataPipe):
    """One of the pipes into which a pipe is divided."""

    def __init__(self, shared: _Shared, place: int, targets: Callable[[Any], list[int]], copied: Callable, has_length: bool) -> None:
        self._shared, self._place, self._targets, self._copied, self._has_length = shared, place, targets, copied, has_length

    def reset(self) -> None:
        self._shared.begin(self._place)

    def __iter__(self) -> Iterator:
        return self._shared.items(self._place, self._targets, self._copied)

    def __len__(self) -> int:
        if self._has_length:
            return len(self._shared.main)  # type: ignore[arg-type]
        raise TypeError(f"{type(self).__name__} instance doesn't have valid length")


def _same(item: Any) -> Any:
    return item


@functional_datapipe("fork")
class Forker(IterDataPipe):
    """Several pipes with all items of one: Forker(pipe, n) is a list of n pipes.

    Args:
        buffer_size: the number of items that may wait for a slower pipe; -1: any number.
        copy: None: all receive one object; "shallow" or "deep": copies.
    """

    def __new__(cls, datapipe: IterDataPipe, num_instances: int, buffer_size: int = 1000, copy: str | None = None) -> Any:
        if num_instances < 1:
            raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")
        if copy not in (None, "shallow", "deep"):
            raise ValueError(f"Unknown copy method `{copy}` requested, choose one of None, `shallow` or `deep`.")
        if num_instances == 1:
            return [datapipe]
        copied = {None: _same, "shallow": copies.copy, "deep": copies.deepcopy}[copy]
        shared, every = _Shared(datapipe, num_instances, buffer_size, "ForkerIterDataPipe"), list(range(num_instances))
        return [_Child(shared, i, lambda item: every, copied, True) for i in range(num_instances)]


@functional_datapipe("demux")
class Demultiplexer(IterDataPipe):
    """Several pipes among which the items of one are divided: Demultiplexer(pipe, n, f) is a list of n pipes.

    Args:
        classifier_fn: returns the number of an item's pipe; None if `drop_none` is True.
        buffer_size: the number of items that may wait for a slower pipe; -1: any number.
    """

    def __new__(
        cls, datapipe: IterDataPipe, num_instances: int, classifier_fn: Callable, drop_none: bool = False, buffer_size: int = 1000
    ) -> Any:
        if num_instances < 1:
            raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")

        def targets(item: Any) -> list[int]:
            place = classifier_fn(item)
            if place is None and drop_none:
                return []
            if place is None or not 0 <= place < num_instances:
                raise ValueError(
                    f"Output of the classification fn should be between 0 and {num_instances - 1}. {place} is returned."
                )
            return [place]

        shared = _Shared(datapipe, num_instances, buffer_size, "DemultiplexerIterDataPipe")
        return [_Child(shared, i, targets, _same, False) for i in range(num_instances)]
