"""Samplers: orders in which samples are drawn.

Random orders are drawn in the client by PyTorch's algorithm and generator (MT19937), so that shuffling does not wait for
the engine and equal seeds give PyTorch's orders.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Generic, TypeVar

from ..._generator import Generator
from ..._mt19937 import MT19937
from ..._random import draw_in_client

__all__ = ["BatchSampler", "RandomSampler", "Sampler", "SequentialSampler", "SubsetRandomSampler", "WeightedRandomSampler"]

T_co = TypeVar("T_co", covariant=True)


def numbers_of(generator: Generator | None) -> MT19937:
    """Random numbers from the generator if given, else from the session's seed."""
    return draw_in_client() if generator is None else generator.draw_in_client()


class Sampler(Generic[T_co]):
    """Yields indices; subclasses define __iter__ and, usually, __len__."""

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """Yields 0, 1, 2, ..., len(data_source) - 1."""

    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Yields num_samples indices (default: all) in random order, or with replacement.

    Without a generator, each iteration draws a seed from the stream that manual_seed starts.
    """

    def __init__(self, data_source, replacement: bool = False, num_samples: int | None = None, generator=None):
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.data_source, self.replacement, self._num_samples = data_source, replacement, num_samples
        self.generator = generator
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={self.num_samples}")

    @property
    def num_samples(self) -> int:
        """The number of indices per iteration."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def _random_source(self) -> MT19937:
        return self.generator.draw_in_client()

    def __iter__(self) -> Iterator[int]:
        n, count = len(self.data_source), self.num_samples
        own = MT19937(draw_in_client().seed()) if self.generator is None else None
        if self.replacement:
            for begin in range(0, count, 32):
                yield from (own or self._random_source()).randint(n, min(32, count - begin))
            return
        for _ in range(count // n):
            yield from (own or self._random_source()).randperm(n)
        if count % n:
            yield from (own or self._random_source()).randperm(n)[: count % n]
        elif own is None:  # PyTorch draws one more permutation, which it does not use
            self._random_source().skip_randperm(n)

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Yields the given indices in random order."""

    def __init__(self, indices, generator=None):
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        for i in numbers_of(self.generator).randperm(len(self.indices)):
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Yields indices drawn with probabilities proportional to the weights."""

    def __init__(self, weights, num_samples: int, replacement: bool = True, generator=None):
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        from ... import as_tensor, float64

        self.weights = as_tensor(weights, dtype=float64)
        if self.weights.ndim != 1:
            raise ValueError(f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}")
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self) -> Iterator[int]:
        yield from numbers_of(self.generator).multinomial(self.weights.tolist(), self.num_samples, self.replacement)

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list]):
    """Yields lists of batch_size indices. The last list may be shorter unless drop_last is set."""

    def __init__(self, sampler, batch_size: int, drop_last: bool):
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if self.drop_last and len(batch) < self.batch_size:
                return
            yield batch

    def __len__(self) -> int:
        n = len(self.sampler)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
