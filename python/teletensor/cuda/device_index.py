"""The current GPU, and GPU indices."""

from __future__ import annotations

from .. import _C
from .._C import Tensor
from .._lazy import set_module

# Index of the GPU that `"cuda"` denotes. The bindings store the same value.
_current = 0  # guarded by the GIL


def index_of(device) -> int:
    """The index of a GPU given as a number, a name, a ``torch.device`` or None (the current GPU)."""
    if device is None:
        return _current
    if isinstance(device, int):
        return device
    placed = _C.placed(device)
    if placed.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {placed}")
    return placed.index


def device_code(device) -> int:
    """The number that identifies the GPU in instructions."""
    return 1 << 8 | index_of(device)


def current_device() -> int:
    """The index of the GPU that ``"cuda"`` denotes."""
    return _current


def set_device(device) -> None:
    """Makes ``"cuda"`` denote the given GPU. A negative number has no effect."""
    global _current
    index = index_of(device)
    if index >= 0:
        _C.swap_current_gpu(index)
        _current = index


class device:  # noqa: N801 - PyTorch's name
    """``with cuda.device(1):`` selects the current GPU for a block; None or a negative number has no effect."""

    def __init__(self, device) -> None:
        self.index = -1 if device is None else index_of(device)
        self._before = -1

    def __enter__(self) -> device:
        self._before = _current
        set_device(self.index)
        return self

    def __exit__(self, *exception) -> None:
        set_device(self._before)


class device_of(device):  # noqa: N801 - PyTorch's name
    """``with cuda.device_of(x):`` selects the tensor's GPU for a block; no effect for a tensor on the CPU."""

    def __init__(self, obj: Tensor) -> None:
        super().__init__(obj.device if obj.is_cuda else None)


set_module("teletensor.cuda", device, device_of)
