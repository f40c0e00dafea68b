"""Tensors distributed over a mesh of ranks; see torch.distributed.tensor."""

from ..._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "_api": "distribute_module distribute_tensor empty full linspace logspace ones rand randn zeros",
    "_dtensor": "DTensor",
    "placement_types": "Partial Placement Replicate Shard",
    "device_mesh": "DeviceMesh init_device_mesh",
}

__all__ = [  # noqa: F822 - imported at their first use
    "DTensor", "Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor", "empty", "full",
    "linspace", "logspace", "ones", "rand", "randn", "zeros",
]  # fmt: skip

__getattr__, __dir__ = lazy_attributes(globals(), None, _NAMES)
