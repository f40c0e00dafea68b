"""torch.utils._device: the default device of a function or a block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._C import device as _device
from ._contextlib import context_decorator

__all__ = ["device_decorator", "set_device"]


def device_decorator(device: Any, func: Callable) -> Callable:
    """Wraps a function, so that each call runs in the context `device`."""
    return context_decorator(lambda: device, func)


def set_device(device: Any) -> Callable[[Callable], Callable]:
    """Returns a decorator of functions whose tensors are created on a device by default."""
    return lambda func: device_decorator(_device(device), func)
