"""torch.distributed.optim: optimizers for several ranks."""

from ..._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "distributed_optimizer": "DistributedOptimizer",
    "post_localSGD_optimizer": "PostLocalSGDOptimizer",
    "zero_redundancy_optimizer": "ZeroRedundancyOptimizer",
}

__all__ = [  # noqa: F822 - imported at their first use
    "DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer",
]  # fmt: skip

__getattr__, __dir__ = lazy_attributes(globals(), None, _NAMES)
