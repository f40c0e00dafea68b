"""torch.distributed.nn: collectives with gradients, and modules on other workers."""

from .functional import *  # noqa: F403


def __getattr__(name: str):
    if name == "RemoteModule":  # imports rpc
        from .api.remote_module import RemoteModule

        return RemoteModule
    raise AttributeError(f"module 'torch.distributed.nn' has no attribute {name!r}")
