"""Data types of ONNX's tensors, and bytes of the engine's tensors in ONNX's layout."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _C
from .._C import Tensor

# TensorProto.DataType, by dtype. The numbers are part of ONNX's file format.
_NUMBERS = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "float64": 11,
    "uint32": 12, "uint64": 13, "bfloat16": 16, "float8_e4m3fn": 17, "float8_e5m2": 19,
}  # fmt: skip
_BY_DTYPE = {getattr(_C, name): number for name, number in _NUMBERS.items() if hasattr(_C, name)}
_BY_NUMBER = {number: dtype for dtype, number in _BY_DTYPE.items()}
_NUMPY = {name: np.dtype(name) for name in _NUMBERS if hasattr(np, name) or name == "bool"}
_BY_DTYPE_NUMPY = {getattr(_C, name): dtype for name, dtype in _NUMPY.items() if hasattr(_C, name)}

INTEGERS = tuple(
    getattr(_C, n) for n in ("uint8", "int8", "uint16", "int16", "int32", "int64", "uint32", "uint64") if hasattr(_C, n)
)
LIMITS = {getattr(_C, n): (np.iinfo(n).min, np.iinfo(n).max) for n in ("uint8", "int8", "int16", "int32", "int64")}


def elem_type(dtype: Any) -> int:
    """ONNX's number of a dtype.

    Raises:
        TypeError: ONNX (or its operators) have no such type, as for complex numbers.
    """
    if dtype not in _BY_DTYPE:
        raise TypeError(f"[onnx.export] ONNX's operators have no type for {dtype}")
    return _BY_DTYPE[dtype]


def dtype_of(number: int) -> Any:
    """The dtype of ONNX's number; None if the engine has none."""
    return _BY_NUMBER.get(number)


def numpy_dtype(dtype: Any) -> np.dtype:
    """NumPy's type of a dtype.

    Raises:
        TypeError: it has none (bfloat16, float8).
    """
    if dtype not in _BY_DTYPE_NUMPY:
        raise TypeError(f"[onnx.export] a constant of the type {dtype}")
    return _BY_DTYPE_NUMPY[dtype]


def has_numpy(dtype: Any) -> bool:
    """Whether NumPy has the type."""
    return dtype in _BY_DTYPE_NUMPY


def dtype_of_array(array: np.ndarray) -> Any:
    """The dtype of an array."""
    return getattr(_C, "bool" if array.dtype == np.bool_ else array.dtype.name)


def is_float(dtype: Any) -> bool:
    """Whether a dtype is one of real floating-point numbers."""
    return bool(dtype.is_floating_point)


def tensor_bytes(tensor: Tensor) -> bytes:
    """The elements of a tensor, in order, little-endian. Waits for the engine."""
    plain = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
    if has_numpy(plain.dtype):
        return plain.numpy().tobytes()
    return plain.reshape(-1).view(_C.uint8).numpy().tobytes()
