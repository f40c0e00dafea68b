"""Orders in which samples are drawn."""

from __future__ import annotations

import random

from ..._random import initial_seed


class Sampler:
    """Gives indices; subclasses define __iter__ and, usually, __len__."""

    def __init__(self, data_source=None):
        pass

    def __iter__(self):
        raise NotImplementedError


class SequentialSampler(Sampler):
    """0, 1, 2, ..."""

    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """All indices in random order, or num_samples of them with replacement.

    The order is drawn in the client (seeded by manual_seed), so that shuffling waits for nothing.
    """

    _draws = 0

    def __init__(self, data_source, replacement: bool = False, num_samples: int | None = None, generator=None):
        self.data_source, self.replacement, self._num_samples = data_source, replacement, num_samples

    @property
    def num_samples(self) -> int:
        """How many indices an iteration gives."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self):
        RandomSampler._draws += 1
        source = random.Random(f"{initial_seed()}:{RandomSampler._draws}")
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


class SubsetRandomSampler(Sampler):
    """The given indices in random order."""

    def __init__(self, indices, generator=None):
        self.indices = list(indices)

    def __iter__(self):
        return (self.indices[i] for i in RandomSampler(self.indices))

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """Indices drawn with the given weights."""

    def __init__(self, weights, num_samples: int, replacement: bool = True, generator=None):
        self.weights = [float(w) for w in (weights.tolist() if hasattr(weights, "tolist") else weights)]
        self.num_samples, self.replacement = num_samples, replacement

    def __iter__(self):
        RandomSampler._draws += 1
        source = random.Random(f"{initial_seed()}:{RandomSampler._draws}")
        if self.replacement:
            return iter(source.choices(range(len(self.weights)), self.weights, k=self.num_samples))
        # Exponential keys: Efraimidis and Spirakis, "Weighted random sampling with a reservoir" (2006).
        keys = sorted((source.expovariate(w), i) for i, w in enumerate(self.weights) if w > 0)
        return iter(i for _, i in keys[: self.num_samples])

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of batch_size indices."""

    def __init__(self, sampler, batch_size: int, drop_last: bool):
        if not isinstance(batch_size, int) or batch_size <= 0:
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
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
