"""An iterator over several epochs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

__all__ = ["CyclingIterator"]


class CyclingIterator(Iterator):
    """Yields the elements of ``generator_fn(epoch)`` for the epochs from `start_epoch` to n - 1, at least those of the first."""

    def __init__(self, n: int, generator_fn: Callable[[int], Iterator], start_epoch: int = 0):
        self._n, self._epoch, self._generator_fn = n, start_epoch, generator_fn
        self._iter = generator_fn(start_epoch)

    def __next__(self):
        while True:
            try:
                return next(self._iter)
            except StopIteration:
                if self._epoch >= self._n - 1:
                    raise
            self._epoch += 1
            self._iter = self._generator_fn(self._epoch)
