"""Communication hooks of DistributedDataParallel."""

from ...._lazy import lazy_attributes


# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {"_types": "DDPCommHookType register_ddp_comm_hook"}

__all__ = [  # noqa: F822 - imported at their first use
    "DDPCommHookType", "default_hooks", "post_localSGD_hook", "powerSGD_hook", "register_ddp_comm_hook",
]  # fmt: skip

__getattr__, __dir__ = lazy_attributes(globals(), None, _NAMES)
