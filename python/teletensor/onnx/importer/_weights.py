"""Initializers and tensor attributes: read from a model or from files beside it, checked before memory is used."""

from __future__ import annotations

import math
import os
import stat
from typing import Any

import numpy as np

from . import _types, _values
from ._package import onnx

HOST_ELEMENTS = 4096  # constants up to this size stay in the client too, for operators that need their values
MAX_RANK = 64
SPARSE_RATIO = 1000  # a sparse tensor may be this many times larger than what is stored of it
SPARSE_BYTES = 64 << 20  # or this large
MAX_FILE = 64 << 30
RATIO = 8
LEAST_BUDGET = 256 << 20


class Budget:
    """How many bytes of weights a model may have: several times what its files have.

    Functions repeat their constants at each call, and initializers may share a part of a file. Both are bounded by this.

    Args:
        stored: the size of the model.
    """

    def __init__(self, stored: int) -> None:
        self.left = LEAST_BUDGET + RATIO * stored
        self.files: set[str] = set()

    def add_file(self, path: str) -> None:
        """Counts a file beside the model, once."""
        if path not in self.files:
            self.files.add(path)
            self.left += RATIO * os.path.getsize(path)

    def use(self, count: int) -> None:
        """Counts bytes that are read.

        Raises:
            ValueError: there are too many.
        """
        self.left -= count
        if self.left < 0:
            raise ValueError(
                f"[onnx.load] expected weights of at most {RATIO} times the model's size, which is exceeded"
            )


def read(tensor: Any, folder: str | None, budget: Budget) -> Any:
    """The host value of a TensorProto or SparseTensorProto.

    Raises:
        ValueError: sizes that do not fit the data, or a file outside the folder.
        TypeError: an element type that does not exist.
    """
    if isinstance(tensor, onnx().SparseTensorProto):
        return _sparse(tensor, folder, budget)
    dims = list(tensor.dims)
    count = _count(dims, tensor.name)
    array_type = _types.numpy_of(tensor.data_type)
    if tensor.data_location == onnx().TensorProto.EXTERNAL:
        return _values.from_array(_external(tensor, dims, count, array_type, folder, budget))
    _check_size(tensor, count)
    budget.use(count * array_type.itemsize)
    found = onnx().numpy_helper.to_array(tensor)
    if tensor.data_type == _types.STRING:
        texts = [t.decode("utf-8", "replace") if isinstance(t, bytes) else t for t in tensor.string_data]
        found = np.empty(len(texts), dtype=object)
        found[:] = texts
        return found.reshape(dims)
    return _values.from_array(found)


def _count(dims: list[int], name: str) -> int:
    if len(dims) > MAX_RANK or any(d < 0 for d in dims):
        raise ValueError(f"[onnx.load] expected at most {MAX_RANK} sizes of at least 0, got {dims[:8]} of {name!r}")
    count = math.prod(dims)
    if count >= 1 << 48:
        raise ValueError(f"[onnx.load] expected sizes of a tensor that fits memory, got {dims[:8]} of {name!r}")
    return count


def _bits(number: int) -> int:
    four = (_types.UINT4, _types.INT4, _types.E2M1)
    if number in four:
        return 4
    return 2 if number in (_types.UINT2, _types.INT2) else 8 * _types.numpy_of(number).itemsize


def _check_size(tensor: Any, count: int) -> None:
    """Compares the sizes with what is stored, before anything is allocated."""
    if tensor.HasField("raw_data"):
        expected, stored = (count * _bits(tensor.data_type) + 7) // 8, len(tensor.raw_data)
    else:
        fields = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data")
        stored = max(len(getattr(tensor, f)) for f in fields)
        bits = _bits(tensor.data_type) if tensor.data_type != _types.STRING else 8
        expected = count if bits >= 8 else (count * bits + 7) // 8
        if tensor.data_type in (_types.COMPLEX64, _types.COMPLEX128):
            expected = 2 * count
    if stored != expected:
        raise ValueError(
            f"[onnx.load] expected {expected} {'bytes' if tensor.HasField('raw_data') else 'elements'} of data for the sizes "
            f"{list(tensor.dims)} of {tensor.name!r}, got {stored}"
        )


def _external(tensor: Any, dims: list[int], count: int, dtype: np.dtype, folder: str | None,
              budget: Budget) -> np.ndarray:  # fmt: skip
    """Maps the part of a file that a tensor's data is in."""
    entries = {e.key: e.value for e in tensor.external_data}
    if folder is None:
        raise ValueError(f"[onnx.load] expected a path, because {tensor.name!r} is in a file beside the model")
    path = _inside(folder, entries.get("location", ""))
    try:
        offset = int(entries.get("offset", 0) or 0)
        length = int(entries["length"]) if entries.get("length") else None
    except ValueError as error:
        raise ValueError(
            f"[onnx.load] expected numbers as offset and length of {tensor.name!r}, got {entries}"
        ) from error
    bits = _bits(tensor.data_type)
    needed = (count * bits + 7) // 8
    size = os.path.getsize(path)
    if offset < 0 or (length is not None and length != needed) or size > MAX_FILE or offset + needed > size:
        raise ValueError(
            f"[onnx.load] expected {needed} bytes for the sizes {dims[:8]} of {tensor.name!r}, got offset {offset} and length "
            f"{length} in a file of {size}"
        )
    if tensor.data_type == _types.STRING:
        raise ValueError(f"[onnx.load] expected the strings of {tensor.name!r} in the model, not in another file")
    budget.add_file(path)
    budget.use(needed)
    if needed == 0:
        return np.zeros(dims, dtype)
    raw = np.memmap(path, np.uint8, "r", offset, (needed,))
    if bits < 8:
        copy = onnx().TensorProto(data_type=tensor.data_type, dims=dims, raw_data=raw.tobytes(), name=tensor.name)
        return onnx().numpy_helper.to_array(copy)
    return raw.view(dtype).reshape(dims)


def _inside(folder: str, location: str) -> str:
    """The path of a file, which must be a regular file in the folder, reached without symbolic links.

    Raises:
        ValueError: it is somewhere else.
    """
    parts = location.replace("\\", "/").split("/")
    if not location or location.startswith(("/", "\\")) or ":" in parts[0] or ".." in parts or "\0" in location:
        raise ValueError(f"[onnx.load] expected the name of a file in the model's folder, got {location[:200]!r}")
    path = folder
    for part in parts:
        if part in ("", "."):
            continue
        path = os.path.join(path, part)
        if os.path.islink(path):
            raise ValueError(
                f"[onnx.load] expected a file in the model's folder, got the symbolic link {location[:200]!r}"
            )
    if not os.path.exists(path) or not stat.S_ISREG(os.stat(path).st_mode):
        raise ValueError(f"[onnx.load] expected a file {location[:200]!r} in the model's folder; there is none")
    return path


def _sparse(tensor: Any, folder: str | None, budget: Budget) -> Any:
    """A sparse tensor as a dense one."""
    values, indices = read(tensor.values, folder, budget), read(tensor.indices, folder, budget)
    dims = list(tensor.dims)
    count = _count(dims, tensor.values.name)
    if not isinstance(values, np.ndarray) or values.dtype == object or indices.dtype != np.int64 or values.ndim != 1:
        raise ValueError("[onnx.load] expected numbers and int64 indices in a sparse tensor")
    size = count * values.dtype.itemsize
    if size > max(SPARSE_BYTES, SPARSE_RATIO * values.nbytes):
        raise ValueError(
            f"[onnx.load] expected a sparse tensor that is not mostly empty, got {values.size} values of {count}"
        )
    if indices.ndim == 2 and indices.shape == (values.size, len(dims)):
        if ((indices < 0) | (indices >= np.asarray(dims))).any():
            raise ValueError(f"[onnx.load] expected indices within {dims} in a sparse tensor")
        places = np.ravel_multi_index(tuple(indices.T), dims) if values.size else np.zeros(0, np.int64)
    elif indices.shape == (values.size,):
        places = indices
        if ((places < 0) | (places >= count)).any():
            raise ValueError(f"[onnx.load] expected indices below {count} in a sparse tensor")
    else:
        raise ValueError(f"[onnx.load] expected indices for {values.size} values, got {indices.shape}")
    dense = np.zeros(count, values.dtype)
    dense[places] = values
    return dense.reshape(dims)
