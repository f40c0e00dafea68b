"""Tensors distributed over a mesh of ranks; see torch.distributed.tensor."""

from ._api import distribute_module, distribute_tensor, empty, full, linspace, logspace, ones, rand, randn, zeros
from ._dtensor import DTensor
from .placement_types import Partial, Placement, Replicate, Shard

__all__ = [
    "DTensor", "Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor", "empty", "full",
    "linspace", "logspace", "ones", "rand", "randn", "zeros",
]  # fmt: skip
