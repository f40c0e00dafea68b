"""Which GPU is meant."""

from __future__ import annotations

from .. import _C
from .._C import Tensor

# As the bindings have it: `"cuda"` without a number is this one.
_current = 0  # guarded by the GIL


def index_of(device) -> int:
    """The number of a GPU given as a number, a name, a ``torch.device`` or None (the current one)."""
    if device is None:
        return _current
    if isinstance(device, int):
        return device
    placed = _C.placed(device)
    if placed.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {placed}")
    return placed.index


def wire_number(device) -> int:
    """The GPU as instructions spell it."""
    return 1 << 8 | index_of(device)


def current_device() -> int:
    """The GPU that ``"cuda"`` stands for."""
    return _current


def set_device(device) -> None:
    """Makes ``"cuda"`` stand for that GPU. A negative number changes nothing."""
    global _current
    index = index_of(device)
    if index >= 0:
        _C.swap_current_gpu(index)
        _current = index


class device:  # noqa: N801 - PyTorch's name
    """``with cuda.device(1):`` makes it the current one for a block; None or a negative number changes nothing."""

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
    """``with cuda.device_of(x):`` makes the GPU of a tensor the current one; nothing for a tensor of the CPU."""

    def __init__(self, obj: Tensor) -> None:
        super().__init__(obj.device if obj.is_cuda else None)
