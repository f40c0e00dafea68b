"""The GPUs of the engine: their number, properties and synchronization."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .. import _C, _connection
from .device_index import index_of


def _gpus() -> list[dict]:
    return [d for d in _connection.connection().engine()["devices"] if d["device"].startswith("cuda")]


def _gpu(which) -> dict:
    index = index_of(which)
    gpus = _gpus()
    if not 0 <= index < len(gpus):
        raise RuntimeError(
            "CUDA error: invalid device ordinal: "
            f"expected an index below {len(gpus)}, the number of the engine's GPUs, got {index}"
        )
    return gpus[index]


def device_count() -> int:
    """The number of the engine's GPUs."""
    return len(_gpus())


def is_available() -> bool:
    """Whether the engine has a GPU."""
    return device_count() > 0


def init() -> None:
    """Connects to the engine if there is no connection yet."""
    _connection.connection()


def _lazy_call(callable: Callable[[], object], **_: object) -> None:
    """Calls the function if the engine has a GPU; PyTorch calls it when CUDA is initialized."""
    if is_available():
        callable()


def is_initialized() -> bool:
    """Whether there is a connection to an engine that has a GPU."""
    return _connection._current is not None and is_available()


def get_device_name(device=None) -> str:
    """The GPU's name, such as ``"NVIDIA H200"``."""
    return _gpu(device)["name"]


def get_device_capability(device=None) -> tuple[int, int]:
    """The GPU's compute capability: (major, minor)."""
    major, minor = _gpu(device)["compute_capability"].split(".")
    return int(major), int(minor)


@dataclass(frozen=True)
class DeviceProperties:
    """The engine's description of a GPU; ``total_memory`` is in bytes."""

    name: str
    major: int
    minor: int
    total_memory: int
    driver: str


def get_device_properties(device=None) -> DeviceProperties:
    """The GPU's name, compute capability, memory and driver."""
    gpu = _gpu(device)
    return DeviceProperties(gpu["name"], *get_device_capability(device), gpu["total_memory"], gpu["driver"])


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the GPU computes in bfloat16. GPUs before Ampere emulate bfloat16."""
    return is_available() and (including_emulation or get_device_capability() >= (8, 0))


def synchronize(device=None) -> None:
    """Waits until the GPU has completed all work issued so far; raises the errors of this work."""
    gpu = _gpu(device)
    _C.torch.empty((1,), device=gpu["device"]).tolist()  # the read is ordered after all issued work


for _public in (
    DeviceProperties, device_count, get_device_capability, get_device_name, get_device_properties, init, is_available,
    is_bf16_supported, is_initialized, synchronize,
):  # fmt: skip
    _public.__module__ = "teletensor.cuda"
