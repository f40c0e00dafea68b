"""DLPack: tensors lent to other libraries, and taken from them.

The bytes are in the engine, so what a consumer gets is a copy in this process, which the capsule owns. NumPy makes the
capsules and reads them: it knows the protocol's versions, strides and flags.
"""

from __future__ import annotations

import enum
from typing import Any

from . import _C
from ._C import Tensor

__all__ = ["from_dlpack", "to_dlpack"]


# What NumPy has no dtype for, by PyTorch's words in messages.
NUMPY_LACKS = {
    _C.bfloat16: "BFloat16", _C.float8_e4m3fn: "Float8_e4m3fn", _C.float8_e5m2: "Float8_e5m2",
}  # fmt: skip


class DLDeviceType(enum.IntEnum):
    """The kinds of devices that DLPack and an engine both know."""

    kDLCPU = 1  # noqa: N815 - DLPack's name
    kDLCUDA = 2  # noqa: N815


_TYPES = {"cpu": DLDeviceType.kDLCPU, "cuda": DLDeviceType.kDLCUDA}


def dlpack_device(self: Tensor) -> tuple[DLDeviceType, int]:
    """Where the tensor's bytes are: (type, number)."""
    if self.device.type not in _TYPES:
        raise ValueError(f"DLPack knows no device {self.device}")
    return _TYPES[self.device.type], self.device.index or 0


def dlpack(
    self: Tensor,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """A capsule of a copy of the tensor in this process's memory. Waits.

    Raises:
        BufferError: no copy is allowed (``copy=False``); the values are on a GPU and nothing asks for them in memory
            (``dl_device=(1, 0)``); they need gradients, or NumPy has no such dtype.
    """
    if copy is False:
        raise BufferError("a tensor's bytes are in an engine: what leaves it is a copy, and copy is False")
    wanted = tuple(map(int, dl_device if dl_device is not None else dlpack_device(self)))
    if wanted != (DLDeviceType.kDLCPU, 0):
        raise BufferError(
            f"a tensor on {self.device} can be lent in memory only: ask for dl_device=(1, 0), not {wanted}"
        )
    if stream is not None:
        raise BufferError("stream must be None: the copy is complete when it is returned")
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if self.dtype in NUMPY_LACKS:
        name = str(self.dtype).removeprefix("torch.")
        raise BufferError(f"NumPy, which makes the capsule, has no {name}: use tensor.float()")
    return self.numpy(force=True).__dlpack__(max_version=max_version)


class _Lender:
    """A capsule as an object of the protocol."""

    def __init__(self, capsule: Any):
        self.capsule = capsule

    def __dlpack__(self, **_options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return DLDeviceType.kDLCPU, 0


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor of the values of what has __dlpack__, or of a capsule; a Tensor itself where nothing asks for a copy.

    Raises:
        ValueError: no copy is allowed (``copy=False``), and the values come from elsewhere or go to another device.
    """
    if isinstance(x, Tensor):
        moves = device is not None and _C.placed(device) != x.device
        if copy is False and moves:
            raise ValueError(f"a tensor on {x.device} gets to {device} by a copy, and copy is False")
        return x.to(device=device, copy=bool(copy)) if copy or moves else x.detach()
    if copy is False:
        raise ValueError("the values get to the engine by a copy, and copy is False")
    import numpy as np

    lender = x if hasattr(x, "__dlpack__") else _Lender(x)
    elsewhere = lender.__dlpack_device__()[0] != DLDeviceType.kDLCPU
    return _C.tensor(np.from_dlpack(lender, device="cpu") if elsewhere else np.from_dlpack(lender), device=device)


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule of a copy of the tensor, of DLPack's first version."""
    return dlpack(tensor)
