"""torch.distributed.elastic.utils.data: a sampler that starts in the middle of an epoch, and an iterator over epochs."""

from ....._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "cycling_iterator": "CyclingIterator",
    "elastic_distributed_sampler": "ElasticDistributedSampler",
}

__all__ = ["CyclingIterator", "ElasticDistributedSampler"]  # noqa: F822 - imported at their first use

__getattr__, __dir__ = lazy_attributes(globals(), None, _NAMES)
