"""torch.distributed._composable: functions that change how a module is trained, and keep its class and names."""

from ..._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "checkpoint_activation": "checkpoint",
    "contract": "_get_registry contract",
    "replicate": "replicate",
}

__all__ = ["_get_registry", "checkpoint", "contract", "replicate"]  # noqa: F822 - imported at their first use

_get, __dir__ = lazy_attributes(globals(), None, _NAMES)


def __getattr__(name: str):
    if name == "fully_shard":  # its former module; fsdp imports the names of this folder's package
        from ..fsdp import fully_shard

        return fully_shard
    return _get(name)
