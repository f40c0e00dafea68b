"""torch.distributed.rpc: calls of functions on other workers, and references to values there. See docs/rpc.md.

rpc.init_rpc("worker0", rank=0, world_size=2)     # and "worker1" in another process
y = rpc.rpc_sync("worker1", torch.add, args=(x, 1))
rpc.shutdown()
"""

from ..._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "_agent": "WorkerInfo",
    "_registry": "register",
    "_rref": "RRef",
    "_start": "init_rpc",
    "api": "get_rpc_timeout get_worker_info remote rpc_async rpc_sync shutdown",
    "options": (
        "BackendType RpcBackendOptions TensorPipeRpcBackendOptions backend_registered "
        "construct_rpc_backend_options"
    ),
}

__all__ = [  # noqa: F822 - imported at their first use
    "BackendType", "RRef", "RpcBackendOptions", "TensorPipeRpcBackendOptions", "WorkerInfo", "backend_registered",
    "construct_rpc_backend_options", "functions", "get_rpc_timeout", "get_worker_info", "init_rpc", "is_available",
    "register", "remote", "rpc_async", "rpc_sync", "shutdown",
]  # fmt: skip


def is_available() -> bool:
    """Whether remote procedure calls are available. Always true."""
    return True


__getattr__, __dir__ = lazy_attributes(globals(), None, _NAMES)
