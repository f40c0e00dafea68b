"""Backend and BackendConfig: the names under which scripts choose a transport for each device.

The engine selects the transport itself: shared memory if all ranks are on one host, Gloo otherwise. ``gloo`` and ``nccl``
name the devices of a group's tensors; ``shm`` requires shared memory.
"""

from __future__ import annotations

import os
import warnings

from .. import _C
from .._lazy import set_module


class Backend(str):
    """A backend's name in lower case: ``Backend("GLOO") == Backend.GLOO == "gloo"``."""

    __slots__ = ()

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"
    FAKE = "fake"
    SHM = "shm"

    backend_list = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE, SHM]
    default_device_backend_map: dict[str, str] = {"cpu": GLOO, "cuda": NCCL}
    backend_capability: dict[str, list[str]] = {
        GLOO: ["cpu", "cuda"],
        NCCL: ["cuda"],
        XCCL: ["xpu"],
        UCC: ["cpu", "cuda"],
        MPI: ["cpu", "cuda"],
        FAKE: ["cpu", "cuda"],
        SHM: ["cpu", "cuda"],
    }

    def __new__(cls, name: str) -> str:
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return name.lower()

    @classmethod
    def register_backend(cls, name, func, extended_api: bool = False, devices=None) -> None:
        """Not supported: collectives run in the engine, which cannot call Python."""
        raise NotImplementedError(
            "[Backend.register_backend] collectives run in the engine, whose backends are built in"
        )


def _gpu_is_available() -> bool:
    from ..cuda import is_available

    return is_available()


class BackendConfig:
    """The backend of each device: of a name, of ``"cpu:gloo,cuda:nccl"``, or by default of the engine's devices."""

    def __init__(self, backend: str):
        backend = str(backend).lower()
        if backend == Backend.UNDEFINED:
            devices = ("cpu", "cuda") if _gpu_is_available() else ("cpu",)
            self.device_backend_map = {device: Backend.default_device_backend_map[device] for device in devices}
        elif ":" in backend:
            self.device_backend_map = self._parse(backend)
        elif backend in Backend.backend_list:
            self.device_backend_map = dict.fromkeys(Backend.backend_capability[backend], backend)
        else:
            raise AssertionError(f"Unknown c10d backend type {backend.upper()}")

    @staticmethod
    def _parse(backend: str) -> dict[str, str]:
        expected = (
            f"The custom backend string argument is invalid: {backend}. Custom backend string is an experimental feature "
            'where the backend string must be in the format: "<device_type1>:<backend1>,<device_type2>:<backend2>...". '
            "e.g. 'cpu:gloo,cuda:nccl'"
        )
        by_device: dict[str, str] = {}
        for pair in backend.split(","):
            parts = pair.split(":")
            if len(parts) != 2:
                raise ValueError(f"Invalid device:backend pairing: {pair}. {expected}")
            device, name = parts
            if device in by_device:
                raise ValueError(f"Duplicate device type {device} in backend string: {backend}. {expected}")
            by_device[device] = Backend(name)
        return by_device

    def get_device_backend_map(self) -> dict[str, str]:
        """Returns the backend by device type."""
        return self.device_backend_map

    def __repr__(self) -> str:
        return ",".join(f"{device}:{backend}" for device, backend in self.device_backend_map.items())


def is_available() -> bool:
    """Whether the package is available. Always True."""
    return True


def is_gloo_available() -> bool:
    """Whether the backend ``gloo`` is available. Always True."""
    return True


def is_nccl_available() -> bool:
    """Whether the backend ``nccl`` is available, that is, whether the engine has a GPU. Waits for the engine."""
    return _gpu_is_available()


def is_mpi_available() -> bool:
    """Whether the backend ``mpi`` is available. Always False: MPI starts ranks, but moves no tensors."""
    return False


def is_ucc_available() -> bool:
    """Whether the backend ``ucc`` is available. Always False."""
    return False


def is_xccl_available() -> bool:
    """Whether the backend ``xccl`` is available. Always False."""
    return False


_AVAILABLE = {
    "gloo": is_gloo_available,
    "shm": is_available,
    "nccl": is_nccl_available,
    "mpi": is_mpi_available,
    "ucc": is_ucc_available,
    "xccl": is_xccl_available,
}


def is_backend_available(backend: str) -> bool:
    """Whether a backend, or each backend of ``"cpu:gloo,cuda:nccl"``, is available."""
    backend = backend.lower()
    names = BackendConfig(backend).get_device_backend_map().values() if ":" in backend else [backend]
    return all(name in _AVAILABLE and _AVAILABLE[name]() for name in names)


def is_torchelastic_launched() -> bool:
    """Whether a launcher (``teletensor launch``) started this process: it sets ``TORCHELASTIC_RUN_ID``."""
    return os.getenv("TORCHELASTIC_RUN_ID") is not None


def get_default_backend_for_device(device: str | _C.device) -> str:
    """Returns the default backend of a device.

    Raises:
        ValueError: the device has none.
    """
    kind = (device if isinstance(device, _C.device) else _C.device(device)).type
    backend = Backend.default_device_backend_map.get(kind)
    if backend is None:
        raise ValueError(f"Default backend not registered for device : {device}")
    return backend


def check_available(config: BackendConfig) -> None:
    """Raises RuntimeError if a backend that a script requested is not available."""
    for name in config.get_device_backend_map().values():
        if name in _AVAILABLE and _AVAILABLE[name]():
            continue
        if name == Backend.NCCL:
            raise RuntimeError(
                "Distributed package doesn't have NCCL built in: the engine has no GPU; use backend 'gloo'"
            )
        if name in (Backend.MPI, Backend.UCC, Backend.XCCL):
            raise RuntimeError(f"Distributed package doesn't have {name.upper()} built in; use backend 'gloo'")
        raise AssertionError(f"Unknown c10d backend type {name.upper()}")


def transport(config: BackendConfig) -> str:
    """Returns the engine's name of a transport, "" to let it choose. ``TELETENSOR_GROUP_BACKEND`` overrides it."""
    forced = os.environ.get("TELETENSOR_GROUP_BACKEND", "")
    if forced not in ("", "gloo", "shm"):
        warnings.warn(f"TELETENSOR_GROUP_BACKEND: expected gloo or shm, got {forced!r}; ignored", stacklevel=2)
        forced = ""
    return forced or ("shm" if Backend.SHM in config.get_device_backend_map().values() else "")


set_module("teletensor.distributed.distributed_c10d", Backend, BackendConfig)
