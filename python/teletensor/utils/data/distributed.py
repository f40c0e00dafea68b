"""A sampler that divides a data set among processes."""

from __future__ import annotations

import math

from ..._mt19937 import MT19937
from .dataset import Dataset  # noqa: F401 - programs import these from here
from .sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler):
    """Yields every num_replicas-th index, starting at rank.

    Indices are repeated, or dropped if drop_last is set, so that all processes get the same number of indices. The number
    of processes and this process's rank are by default those of the default process group. The order is PyTorch's for the
    same seed and epoch.
    """

    def __init__(
        self, dataset, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True, seed: int = 0,
        drop_last: bool = False,
    ):  # fmt: skip
        if num_replicas is None or rank is None:
            from ... import distributed

            num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
            rank = distributed.get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.shuffle, self.seed, self.drop_last, self.epoch = shuffle, seed, drop_last, 0
        n = len(dataset)
        self.num_samples = n // num_replicas if drop_last else math.ceil(n / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self):
        n = len(self.dataset)
        indices = MT19937(self.seed + self.epoch).randperm(n) if self.shuffle else list(range(n))
        if not self.drop_last and indices:
            indices += (indices * math.ceil(self.total_size / len(indices)))[: self.total_size - len(indices)]
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch, which determines the order. All processes must set the same epoch."""
        self.epoch = epoch
