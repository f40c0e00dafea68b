"""torch.cuda._utils: indices of devices."""

from __future__ import annotations

from typing import Any

from .. import _C
from .device_index import current_device

__all__: list[str] = []


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index of a GPU given as a number, a name or a device; -1 for the CPU with ``allow_cpu``.

    ``optional``: None, or a GPU without an index, denotes the current one.
    """
    if isinstance(device, int):
        return device
    if isinstance(device, str):
        device = _C.device(device)
    if isinstance(device, _C.device):
        if device.type == "cpu" and allow_cpu:
            return -1
        if device.type != "cuda":
            raise ValueError(f"Expected a {'cuda or cpu' if allow_cpu else 'cuda'} device, but got: {device}")
        if device.index is not None:
            return device.index
    elif device is not None:
        raise TypeError(f"expected a device, a name or an index, got {type(device).__name__}")
    if not optional:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
    return current_device()
