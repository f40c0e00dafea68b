"""torch._utils: flattening and grouping of tensors, and exceptions of workers."""

from __future__ import annotations

import sys
import traceback
from typing import Any

from . import _C
from ._C import Tensor


def _flatten_dense_tensors(tensors) -> Tensor:
    """Concatenates all elements of the tensors."""
    return _C.torch.cat([t.reshape(-1) for t in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors) -> tuple[Tensor, ...]:
    """Splits `flat` into views with the tensors' sizes."""
    pieces, at = [], 0
    for t in tensors:
        pieces.append(flat.narrow(0, at, t.numel()).view(t.shape))
        at += t.numel()
    return tuple(pieces)


def _take_tensors(tensors, size_limit: int):
    """Yields lists of tensors of one dtype, each of at most `size_limit` bytes or of a single tensor."""
    waiting: dict = {}
    for t in tensors:
        held, count = waiting.get(t.dtype, ([], 0))
        size = t.numel() * t.dtype.itemsize
        if held and count + size > size_limit:
            yield held
            held, count = [], 0
        waiting[t.dtype] = ([*held, t], count + size)
    for held, _ in waiting.values():
        if held:
            yield held


class KeyErrorMessage(str):
    """Text whose repr is the text itself, so that a KeyError shows its line breaks."""

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """The type and the formatted traceback of an exception, to raise it in another thread or process.

    Args:
        exc_info: as returned by sys.exc_info(), which is the default.
        where: where the exception was raised, for the message.
    """

    def __init__(self, exc_info=None, where: str = "in background"):
        kind, error, trace = exc_info or sys.exc_info()
        self.exc_type, self.where = kind, where
        self.exc_msg = "".join(traceback.format_exception(kind, error, trace))

    def reraise(self) -> None:
        """Raises an exception of the same type, whose message contains the traceback; RuntimeError if that fails."""
        text = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            text = KeyErrorMessage(text)
        try:
            has_message = getattr(self.exc_type, "message", None)
            error = self.exc_type(message=text) if has_message else self.exc_type(text)
        except Exception:
            raise RuntimeError(text) from None
        raise error


def _element_size(dtype) -> int:
    """The bytes of an element of a dtype."""
    if not isinstance(dtype, _C.dtype):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
    return dtype.itemsize


def _get_device_index(device, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index of a device (an int, text, a device or None); -1 for the CPU if it is allowed.

    Raises:
        ValueError: the device has no index, and `optional` does not allow to return the current GPU's.
    """
    if isinstance(device, int) and not isinstance(device, bool):
        return device
    given = _C.device(device) if isinstance(device, str) else device
    if isinstance(given, _C.device):
        if given.type == "cpu":
            if not allow_cpu:
                raise ValueError(f"Expected a non cpu device, but got: {device}")
            return -1 if given.index is None else given.index
        if given.index is not None:
            return given.index
    elif given is not None:
        raise ValueError(f"Expected a torch.device, int or None, but got {type(device).__name__}")
    if not optional:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got: {device}")
    from . import cuda

    return cuda.current_device()


def _get_available_device_type() -> str | None:
    """The type of the engine's accelerators; None without one."""
    from . import accelerator

    current = accelerator.current_accelerator()
    return None if current is None else current.type


def _get_device_module(device_type: str) -> Any:
    """The module of a type of devices, such as teletensor.cuda.

    Raises:
        RuntimeError: there is none.
    """
    module = getattr(sys.modules[__package__], device_type, None)
    if module is None:
        raise RuntimeError(f"Device '{device_type}' does not have a corresponding module registered as 'torch.{device_type}'.")
    return module
