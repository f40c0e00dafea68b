"""A sampler for runs that continue in the middle of an epoch, perhaps with another number of ranks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sized

from ....._mt19937 import MT19937
from .....utils.data.distributed import DistributedSampler

__all__ = ["ElasticDistributedSampler"]


class ElasticDistributedSampler(DistributedSampler):
    """Divides the elements from `start_index` on, in a random order that the epoch determines, among the ranks.

    Args:
        dataset: has a length, which does not change.
        num_replicas, rank: by default those of the default process group.
        start_index: the first element.
    """

    def __init__(self, dataset, num_replicas: int | None = None, rank: int | None = None, start_index: int = 0):
        super().__init__(dataset, num_replicas, rank)
        if not isinstance(dataset, Sized):
            raise TypeError("Dataset must be an instance of collections.abc.Sized")
        if start_index >= len(dataset):
            raise ValueError(f"Start index {start_index} should be less than dataset size {len(dataset)}")
        self.start_index = start_index
        self.num_samples = math.ceil((len(dataset) - start_index) / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset) - self.start_index
        indices = [self.start_index + i for i in MT19937(self.epoch).randperm(count)]
        indices += indices[: self.total_size - count]
        if len(indices) != self.total_size:
            raise AssertionError(
                f"[ElasticDistributedSampler] expected at least as many elements as are missing, got {count} elements for "
                f"{self.num_replicas} ranks"
            )
        return iter(indices[self.rank :: self.num_replicas])
