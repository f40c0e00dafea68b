"""torch.distributed.elastic.utils.data: a sampler that starts in the middle of an epoch, and an iterator over epochs."""

from .cycling_iterator import CyclingIterator
from .elastic_distributed_sampler import ElasticDistributedSampler

__all__ = ["CyclingIterator", "ElasticDistributedSampler"]
