"""Samplers: orders in which samples are drawn."""

from __future__ import annotations

import random
from typing import Generic, TypeVar

from ..._generator import Generator
from ..._random import draw_in_client


def _source(generator: Generator | None) -> random.Random:
    """Random numbers from the generator if given, else from the session's seed. Does not wait for the engine."""
    return draw_in_client() if generator is None else generator.draw_in_client()


T_co = TypeVar("T_co", covariant=True)


class Sampler(Generic[T_co]):
    """Yields indices; subclasses define __iter__ and, usually, __len__."""

    def __iter__(self):
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """Yields 0, 1, 2, ..., len(data_source) - 1."""

    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Yields num_samples indices (default: all) in random order, or with replacement.

    The order is drawn in the client (seeded by manual_seed), so that shuffling does not wait for the engine.
    """

    def __init__(self, data_source, replacement: bool = False, num_samples: int | None = None, generator=None):
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
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

    def __iter__(self):
        source = _source(self.generator)
        n = len(self.data_source)
        if self.replacement:
            return iter(source.choices(range(n), k=self.num_samples))
        order = list(range(n))
        indices: list[int] = []
        while len(indices) < self.num_samples:
            source.shuffle(order)
            indices += order
        return iter(indices[: self.num_samples])

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Yields the given indices in random order."""

    def __init__(self, indices, generator=None):
        self.indices, self.generator = list(indices), generator

    def __iter__(self):
        order = RandomSampler(self.indices, generator=self.generator) if len(self.indices) else ()
        return (self.indices[i] for i in order)

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Yields indices drawn with probabilities proportional to the weights."""

    def __init__(self, weights, num_samples: int, replacement: bool = True, generator=None):
        rows = weights.tolist() if hasattr(weights, "tolist") else list(weights)
        if any(isinstance(w, (list, tuple)) for w in rows):
            raise ValueError("weights should be a 1d sequence but given weights have several dimensions")
        self.weights = [float(w) for w in rows]
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        if not replacement and num_samples > sum(w > 0 for w in self.weights):
            raise RuntimeError(
                "invalid multinomial distribution (with replacement=False, not enough non-negative category to sample): "
                f"cannot draw {num_samples} samples"
            )
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self):
        source = _source(self.generator)
        if self.replacement:
            return iter(source.choices(range(len(self.weights)), self.weights, k=self.num_samples))
        # Exponential keys: Efraimidis and Spirakis, "Weighted random sampling with a reservoir" (2006).
        keys = sorted((source.expovariate(w), i) for i, w in enumerate(self.weights) if w > 0)
        return iter(i for _, i in keys[: self.num_samples])

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Yields lists of batch_size indices. The last list may be shorter unless drop_last is set."""

    def __init__(self, sampler, batch_size: int, drop_last: bool):
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self):
        batch: list[int] = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        n = len(self.sampler)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
