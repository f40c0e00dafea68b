"""The storages of a file: their descriptions in pickles, and their creation in the engine."""

from __future__ import annotations

import sys
from typing import Any

from .. import _C
from .._storage import UntypedStorage
from ..storage import TypedStorage
from . import _settings
from ._errors import damaged, require
from ._globals import StorageType
from ._locations import Placement


class StorageMaker:
    """Creates the storages of a file: sends the bytes of each to the engine once, to the device where it is placed."""

    def __init__(self, placement: Placement, byte_order: str) -> None:
        self._placement, self._swaps = placement, byte_order != sys.byteorder

    def make(self, dtype: _C.dtype, nbytes: int, location: str, read) -> TypedStorage:
        """A storage of elements of a dtype. `read`: a function that returns its bytes."""
        device, kept = self._placement.device(location), dtype
        dtype = getattr(dtype, "stored", dtype)  # the bytes of integers of 4 or 2 bits
        if device.type == "meta" or location == "meta":
            untyped = UntypedStorage._of(_C.torch.empty(nbytes // dtype.itemsize, dtype=dtype, device="meta"))
        elif _settings.state.skips_data:
            untyped = UntypedStorage._of(_C.torch.zeros(nbytes // dtype.itemsize, dtype=dtype, device=device))
        else:
            data = read()
            require(len(data) == nbytes, f"{nbytes} bytes of a storage", len(data))
            if dtype is _C.bool and bytes(data).translate(None, b"\0\1"):
                raise damaged("expected 0 and 1 for booleans")
            if self._swaps:
                data = _swapped(data, dtype)
            kind = _C.uint8 if nbytes % dtype.itemsize else dtype  # a storage need not be a multiple of its elements
            untyped = UntypedStorage._of(_uploaded(data, kind, nbytes // kind.itemsize, device))
        if untyped.device.type != "meta" or location != "meta":
            untyped = self._placement.place(untyped, location)
        return TypedStorage(wrap_storage=untyped, dtype=kept)


def _uploaded(data, dtype: _C.dtype, count: int, device: _C.device) -> _C.Tensor:
    """A tensor with the bytes; those of a mapped file are not copied here."""
    name = str(dtype).removeprefix("torch.")
    if isinstance(data, bytes) or dtype in (_C.bfloat16, _C.float8_e4m3fn, _C.float8_e5m2):
        return _C.from_bytes(bytes(data), dtype, [count], device)
    import numpy as np

    return _C.tensor(np.frombuffer(data, name), device=device)


def _swapped(data, dtype: _C.dtype):
    """The bytes, with the byte order of each number reversed."""
    import numpy as np

    size = dtype.itemsize // (2 if dtype.is_complex else 1)
    return data if size == 1 else np.frombuffer(data, f"u{size}").byteswap().tobytes()


def text_of(value: Any, what: str) -> str:
    """A text of a file, which files of Python 2 store as bytes."""
    if isinstance(value, bytes):
        value = value.decode("ascii")
    require(isinstance(value, (str, int)) and not isinstance(value, bool), what, value)
    return str(value)


def storage_fields(identity: Any, count: int) -> tuple:
    """The checked (dtype, key, location, number of elements, ...) of a persistent id of `count` elements."""
    valid = isinstance(identity, tuple) and len(identity) == count and identity[0] in ("storage", b"storage")
    require(valid and isinstance(identity[1], StorageType), "the id of a storage", identity)
    _, kind, key, location, numel, *more = identity
    require(type(numel) is int and 0 <= numel < 2**59, "a number of elements", numel)
    return (kind.dtype, text_of(key, "a storage's key"), text_of(location, "a location tag"), numel, *more)
