"""torch.distributed.rpc: calls of functions on other workers, and references to values there. See docs/rpc.md.

rpc.init_rpc("worker0", rank=0, world_size=2)     # and "worker1" in another process
y = rpc.rpc_sync("worker1", torch.add, args=(x, 1))
rpc.shutdown()
"""

from __future__ import annotations

from . import _agent, _registry, api, constants, functions, options
from ._agent import WorkerInfo
from ._registry import register
from ._rref import RRef
from .api import get_rpc_timeout, get_worker_info, init_rpc, remote, rpc_async, rpc_sync, shutdown
from .options import (
    BackendType, RpcBackendOptions, TensorPipeRpcBackendOptions, backend_registered, construct_rpc_backend_options,
)  # fmt: skip

__all__ = [
    "BackendType", "RRef", "RpcBackendOptions", "TensorPipeRpcBackendOptions", "WorkerInfo", "backend_registered",
    "construct_rpc_backend_options", "functions", "get_rpc_timeout", "get_worker_info", "init_rpc", "is_available",
    "register", "remote", "rpc_async", "rpc_sync", "shutdown",
]  # fmt: skip


def is_available() -> bool:
    """Whether remote procedure calls are available. Always true."""
    return True


def _load_remote_functions() -> None:
    """Imports the modules of torch.distributed whose functions other workers call."""
    from ..nn.api import remote_module  # noqa: F401
    from ..optim import distributed_optimizer  # noqa: F401


_registry.loaders.append(_load_remote_functions)
