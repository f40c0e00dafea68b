"""torch.distributed._composable: functions that change how a module is trained, and keep its class and names."""

from .checkpoint_activation import checkpoint
from .contract import _get_registry, contract
from .replicate import replicate

__all__ = ["_get_registry", "checkpoint", "contract", "replicate"]


def __getattr__(name: str):
    if name == "fully_shard":  # its former module; fsdp imports the names of this folder's package
        from ..fsdp import fully_shard

        return fully_shard
    raise AttributeError(f"module 'torch.distributed._composable' has no attribute {name!r}")
