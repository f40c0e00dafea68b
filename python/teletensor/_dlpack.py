"""DLPack: exports tensors to other libraries and imports theirs.

A tensor's bytes are in the engine, so a consumer gets a copy in this process's memory, which the capsule owns. NumPy
creates and reads the capsules, because it implements the protocol's versions, strides and flags.
"""

from __future__ import annotations

import enum
from typing import Any

from . import _C
from ._C import Tensor

__all__ = ["from_dlpack", "to_dlpack"]


# The dtypes that NumPy does not support, with the names that PyTorch's error messages use for them.
UNSUPPORTED_BY_NUMPY = {
    _C.bfloat16: "BFloat16", _C.float8_e4m3fn: "Float8_e4m3fn", _C.float8_e5m2: "Float8_e5m2",
}  # fmt: skip


class DLDeviceType(enum.IntEnum):
    """The device types that both DLPack and an engine support."""

    kDLCPU = 1  # noqa: N815 - DLPack's name
    kDLCUDA = 2  # noqa: N815


_TYPES = {"cpu": DLDeviceType.kDLCPU, "cuda": DLDeviceType.kDLCUDA}


def dlpack_device(self: Tensor) -> tuple[DLDeviceType, int]:
    """Implements __dlpack_device__: returns (device type, device index)."""
    if self.device.type not in _TYPES:
        raise ValueError(f"DLPack does not support device {self.device}")
    return _TYPES[self.device.type], self.device.index or 0


def dlpack(
    self: Tensor,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """Implements __dlpack__: returns a capsule with a copy of the tensor in this process's memory. Waits for the engine.

    Raises:
        BufferError: ``copy`` is False, ``stream`` is given, ``dl_device`` (by default the tensor's device) is not
            ``(1, 0)`` (host memory), the tensor requires grad, or NumPy does not support the dtype.
    """
    if copy is False:
        raise BufferError("the tensor's bytes are in an engine, so exporting them requires a copy, but copy is False")
    target = tuple(map(int, dl_device if dl_device is not None else dlpack_device(self)))
    if target != (DLDeviceType.kDLCPU, 0):
        raise BufferError(
            f"a tensor on {self.device} can only be exported to host memory: expected dl_device=(1, 0), got {target}"
        )
    if stream is not None:
        raise BufferError("expected stream to be None: the copy is complete when it is returned")
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if self.dtype in UNSUPPORTED_BY_NUMPY:
        name = str(self.dtype).removeprefix("torch.")
        raise BufferError(f"NumPy, which creates the capsule, does not support {name}: use tensor.float()")
    return self.numpy(force=True).__dlpack__(max_version=max_version)


class _CapsuleHolder:
    """Wraps a bare capsule in an object that implements the protocol."""

    def __init__(self, capsule: Any):
        self.capsule = capsule

    def __dlpack__(self, **_options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return DLDeviceType.kDLCPU, 0


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Imports an object with __dlpack__, or a capsule, by default to the CPU.

    A Tensor is returned detached, without copying its bytes, unless a copy or another device is requested.

    Raises:
        ValueError: ``copy`` is False, but ``ext_tensor`` is not a Tensor or is on another device.
    """
    if isinstance(ext_tensor, Tensor):
        moves = device is not None and _C.placed(device) != ext_tensor.device
        if copy is False and moves:
            raise ValueError(f"moving a tensor from {ext_tensor.device} to {device} requires a copy, but copy is False")
        return ext_tensor.to(device=device, copy=bool(copy)) if copy or moves else ext_tensor.detach()
    if copy is False:
        raise ValueError("moving the values to the engine requires a copy, but copy is False")
    import numpy as np

    producer = ext_tensor if hasattr(ext_tensor, "__dlpack__") else _CapsuleHolder(ext_tensor)
    on_device = producer.__dlpack_device__()[0] != DLDeviceType.kDLCPU
    array = np.from_dlpack(producer, device="cpu") if on_device else np.from_dlpack(producer)
    return _C.tensor(array, device="cpu" if device is None else device)


def to_dlpack(tensor: Tensor) -> Any:
    """Returns a capsule, of DLPack's first version, with a copy of the tensor."""
    return dlpack(tensor)
