"""The result of Tensor.data_ptr(): a number that identifies a memory location, and the address of a copy for foreign
functions.
"""

from __future__ import annotations

import functools
import numbers
import operator
from typing import Any

from . import _storage
from ._C import Tensor


class LocalCopy:
    """A read-only copy of bytes in this process."""

    def __init__(self, data: Any) -> None:
        import ctypes  # slow to import, and rarely needed
        import mmap

        self._memory = mmap.mmap(-1, max(data.nbytes, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._memory[: data.nbytes] = data.tobytes()
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        # A foreign function that writes fails at once: its values would never reach the engine.
        ctypes.CDLL(None).mprotect(ctypes.c_void_p(self.address), ctypes.c_size_t(len(self._memory)), 1)


class Address:
    """The location of a tensor's first element: compares and adds like the number `UntypedStorage.data_ptr()` plus the
    offset.

    The bytes are in an engine, so it is no address; the number has more than 64 bits. A function called with ctypes gets
    the address of a read-only copy of the tensor's values at that moment, which exists as long as the tensor's Python
    object. Making the copy waits for the engine.
    """

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor
        self._number = tensor.untyped_storage().data_ptr() + tensor.storage_offset() * tensor.element_size()

    def __int__(self) -> int:
        return self._number



    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return str(self._number)

    def __format__(self, spec: str) -> str:
        return format(self._number, spec)

    @property
    def _as_parameter_(self) -> int:
        """The address of a copy of the bytes from the first element to the last. ctypes reads this attribute.

        Raises:
            RuntimeError: the tensor is on a GPU, whose addresses are not valid in this process.
        """
        tensor = self._tensor
        if tensor.is_cuda:
            raise RuntimeError(_storage.no_address_error("Tensor.data_ptr()"))
        copies = tensor.__dict__.setdefault("_local_copies", {})
        if tensor._version not in copies:
            extent = 1 + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride()))
            start, item = tensor.storage_offset(), tensor.element_size()
            data = _storage.byte_view(tensor)[start * item : (start + extent) * item].numpy()
            copies[tensor._version] = LocalCopy(data)
        return copies[tensor._version].address


def _operation(function: Any, reflected: bool) -> Any:
    @functools.wraps(function)
    def apply(self: Address, other: Any) -> Any:
        if not isinstance(other, (int, Address)):
            return NotImplemented
        a, b = int(self), int(other)
        return function(b, a) if reflected else function(a, b)

    return apply


for _name in ("eq", "ne", "lt", "le", "gt", "ge", "add", "sub", "mul", "floordiv", "mod", "and_", "or_", "xor", "rshift", "lshift"):
    _special = _name.strip("_")
    setattr(Address, f"__{_special}__", _operation(getattr(operator, _name), False))
    if _special not in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(Address, f"__r{_special}__", _operation(getattr(operator, _name), True))
Address.__hash__ = lambda self: hash(int(self))
Address.__index__ = Address.__int__
numbers.Integral.register(Address)


def data_ptr(tensor: Tensor) -> Address | int:
    """The address of a tensor's first element; 0 if the tensor has no elements or no bytes."""
    return 0 if tensor.numel() == 0 or tensor.device.type == "meta" else Address(tensor)


__all__ = ["Address", "LocalCopy", "data_ptr"]
