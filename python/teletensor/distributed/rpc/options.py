"""torch.distributed.rpc.options and .backend_registry: the options of init_rpc()."""

from __future__ import annotations

import enum

from ... import _C
from ..._lazy import set_module
from . import constants

__all__ = ["TensorPipeRpcBackendOptions"]


class BackendType(enum.Enum):
    """The only backend. The name is PyTorch's; teletensor's engines are the transport."""

    TENSORPIPE = "TENSORPIPE"


class RpcBackendOptions:
    """`rpc_timeout`: of each call in seconds, unless the call has one; 0 is none. `init_method`: see init_process_group()."""

    def __init__(
        self,
        rpc_timeout: float = constants.DEFAULT_RPC_TIMEOUT_SEC,
        init_method: str = constants.DEFAULT_INIT_METHOD,
    ):
        if not isinstance(rpc_timeout, int | float) or rpc_timeout < 0:
            raise ValueError(f"[rpc] expected rpc_timeout of at least 0 seconds, got {rpc_timeout!r}")
        self.rpc_timeout, self.init_method = float(rpc_timeout), init_method


class TensorPipeRpcBackendOptions(RpcBackendOptions):
    """Options with PyTorch's names.

    Args:
        num_worker_threads: the number of threads that run the functions other workers call.
        rpc_timeout, init_method: see RpcBackendOptions.
        device_maps: by worker, the device there for each GPU here. Tensors on other GPUs are rejected.
        devices, _transports, _channels: not supported.
    """

    def __init__(
        self,
        *,
        num_worker_threads: int = constants.DEFAULT_NUM_WORKER_THREADS,
        rpc_timeout: float = constants.DEFAULT_RPC_TIMEOUT_SEC,
        init_method: str = constants.DEFAULT_INIT_METHOD,
        device_maps: dict[str, dict] | None = None,
        devices: list | None = None,
        _transports: list | None = None,
        _channels: list | None = None,
    ):
        super().__init__(rpc_timeout, init_method)
        if not isinstance(num_worker_threads, int) or num_worker_threads < 1:
            raise ValueError(f"[rpc] expected at least 1 worker thread, got {num_worker_threads!r}")
        for name, value in (("devices", devices), ("_transports", _transports), ("_channels", _channels)):
            if value is not None:
                raise NotImplementedError(f"[rpc] {name} is not supported: the engines select devices and transport")
        self.num_worker_threads = num_worker_threads
        self.device_maps: dict[str, dict] = {}
        for worker, devices_of in (device_maps or {}).items():
            self.set_device_map(worker, devices_of)

    def set_device_map(self, to: str, device_map: dict) -> None:
        """Adds devices of a worker for GPUs here. Call it before init_rpc().

        Raises:
            ValueError: a device is not a GPU, is mapped already, or is the target of two devices.
        """
        known = dict(self.device_maps.get(to, {}))
        for here, there in device_map.items():
            source, target = _gpu(here), _gpu(there)
            if known.setdefault(source, target) != target:
                raise ValueError(f"`set_device_map` only supports 1-to-1 mapping, trying to map {source} to {target}")
        if len(set(known.values())) != len(known):
            raise ValueError(f"`set_device_map` only supports 1-to-1 mapping, got {known}")
        self.device_maps[to] = known


def _gpu(device) -> str:
    device = _C.device("cuda", device) if isinstance(device, int) else _C.device(device)
    if device.type != "cuda":
        raise ValueError(f"`set_device_map` only supports CUDA devices, got {device}")
    return f"cuda:{device.index or 0}"


def backend_registered(backend_name: str) -> bool:
    """Whether the name is that of a backend."""
    return backend_name in BackendType.__members__


def construct_rpc_backend_options(
    backend: BackendType,
    rpc_timeout: float = constants.DEFAULT_RPC_TIMEOUT_SEC,
    init_method: str = constants.DEFAULT_INIT_METHOD,
    **options,
) -> TensorPipeRpcBackendOptions:
    """Returns a backend's options."""
    if not isinstance(backend, BackendType):
        raise TypeError(f"[rpc] expected a BackendType, got {backend!r}")
    return TensorPipeRpcBackendOptions(rpc_timeout=rpc_timeout, init_method=init_method, **options)


set_module("teletensor.distributed.rpc.backend_registry", BackendType)
