"""Tensors from bytes of this process, and from files of this machine. Both are copies."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._C import Tensor
from .._options import check_flags, check_layout
from .._storage import tensor_of_file


def frombuffer(buffer: Any, *, dtype, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A one-dimensional tensor with a copy of a buffer's values, in this machine's byte order.

    Args:
        buffer: an object with Python's buffer protocol.
        count: the number of elements, by default all after the offset.
        offset: the number of bytes to skip.
    """
    check_flags("frombuffer", requires_grad=requires_grad)
    if not isinstance(dtype, _C.dtype):
        raise TypeError(f"frombuffer(): argument 'dtype' must be torch.dtype, not {type(dtype).__name__}")
    try:
        data = memoryview(buffer)
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    size, each = data.nbytes, dtype.itemsize
    if size <= 0 or count == 0:
        raise ValueError(f"both buffer length ({size}) and count ({count}) must not be 0")
    if not 0 <= offset < size:
        raise ValueError(f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({size} bytes) minus 1")
    if count < 0:
        if (size - offset) % each:
            raise ValueError(
                f"buffer length ({size - offset} bytes) after offset ({offset} bytes) must be a multiple of element size ({each})"
            )
        count = (size - offset) // each
    if offset + count * each > size:
        raise ValueError(
            f"requested buffer length ({count} * {each} bytes) after offset ({offset} bytes) must not be greater than actual "
            f"buffer length ({size} bytes)"
        )
    tensor = _C.from_bytes(bytes(data.cast("B")[offset : offset + count * each]), dtype, [count], _C.device("cpu"))
    return tensor.requires_grad_() if requires_grad else tensor


def from_file(
    filename: str, shared: bool | None = None, size: int | None = 0, *, dtype=None, layout=None, device=None,
    pin_memory: bool | None = False, requires_grad: bool | None = False,
) -> Tensor:  # fmt: skip
    """A one-dimensional tensor with the first ``size`` elements of a file of this machine.

    With ``shared`` it is read-only, with a warning: writes to the tensor cannot change the file.

    Raises:
        NotImplementedError: ``shared`` is True and the file does not exist, or has fewer elements.
    """
    check_layout("from_file", layout)
    check_flags("from_file", pin_memory=bool(pin_memory), requires_grad=bool(requires_grad))
    dtype = _C.default_dtype() if dtype is None else dtype
    tensor = tensor_of_file(filename, bool(shared), (size or 0) * dtype.itemsize).view(dtype).to(device=device)
    return tensor.requires_grad_() if requires_grad else tensor
