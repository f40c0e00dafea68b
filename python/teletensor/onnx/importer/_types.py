"""ONNX's element types: their dtypes in the engine and in NumPy, and those that the engine stores in another dtype.

Integers of 2 and 4 bits are stored as int8 or uint8. Floating-point types of 4 and 8 bits that the engine lacks are
stored in a wider dtype that has all of their values: float16, or float32 for float8e8m0.
"""

from __future__ import annotations

from functools import cache

import numpy as np

import teletensor as torch

FLOAT, UINT8, INT8, UINT16, INT16, INT32, INT64, STRING, BOOL, FLOAT16 = range(1, 11)
DOUBLE, UINT32, UINT64, COMPLEX64, COMPLEX128, BFLOAT16, E4M3FN, E4M3FNUZ, E5M2, E5M2FNUZ = range(11, 21)
UINT4, INT4, E2M1, E8M0, UINT2, INT2 = range(21, 27)

# Element type: its dtype in the engine.
DTYPES = {
    FLOAT: torch.float32, UINT8: torch.uint8, INT8: torch.int8, UINT16: torch.uint16, INT16: torch.int16,
    INT32: torch.int32, INT64: torch.int64, BOOL: torch.bool, FLOAT16: torch.float16, DOUBLE: torch.float64,
    UINT32: torch.uint32, UINT64: torch.uint64, COMPLEX64: torch.complex64, COMPLEX128: torch.complex128,
    BFLOAT16: torch.bfloat16, E4M3FN: torch.float8_e4m3fn, E5M2: torch.float8_e5m2,
    E4M3FNUZ: torch.float16, E5M2FNUZ: torch.float16, E2M1: torch.float16, E8M0: torch.float32,
    UINT4: torch.uint8, INT4: torch.int8, UINT2: torch.uint8, INT2: torch.int8,
}  # fmt: skip
# Types that share the dtype of another type: a value of one of them has to carry its type.
NARROW = frozenset({E4M3FNUZ, E5M2FNUZ, E2M1, E8M0, UINT4, INT4, UINT2, INT2})
SMALL_FLOATS = frozenset({E4M3FN, E4M3FNUZ, E5M2, E5M2FNUZ, E2M1, E8M0})
SMALL_INTEGERS = {UINT4: (0, 15), INT4: (-8, 7), UINT2: (0, 3), INT2: (-2, 1)}
# The type of a dtype of the engine.
TYPE_OF = {dtype: number for number, dtype in DTYPES.items() if number not in NARROW}
# The names of types in ml_dtypes, which NumPy lacks.
_ML_NAMES = {
    BFLOAT16: "bfloat16", E4M3FN: "float8_e4m3fn", E4M3FNUZ: "float8_e4m3fnuz", E5M2: "float8_e5m2",
    E5M2FNUZ: "float8_e5m2fnuz", UINT4: "uint4", INT4: "int4", E2M1: "float4_e2m1fn", E8M0: "float8_e8m0fnu",
    UINT2: "uint2", INT2: "int2",
}  # fmt: skip
_NUMPY = {
    FLOAT: np.float32, UINT8: np.uint8, INT8: np.int8, UINT16: np.uint16, INT16: np.int16, INT32: np.int32,
    INT64: np.int64, BOOL: np.bool_, FLOAT16: np.float16, DOUBLE: np.float64, UINT32: np.uint32, UINT64: np.uint64,
    COMPLEX64: np.complex64, COMPLEX128: np.complex128, STRING: object,
}  # fmt: skip
_TYPE_OF_NUMPY = {np.dtype(t): number for number, t in _NUMPY.items()}
_TYPE_OF_ML = {name: number for number, name in _ML_NAMES.items()}


def dtype_of(number: int) -> torch.dtype:
    """The engine's dtype for an element type of ONNX.

    Raises:
        TypeError: the type does not exist, or is that of strings.
    """
    if number not in DTYPES:
        raise TypeError(f"[onnx] expected an element type of numbers, got {number}")
    return DTYPES[number]


@cache
def numpy_of(number: int) -> np.dtype:
    """NumPy's dtype for an element type, of the package ml_dtypes where NumPy has none."""
    if number in _NUMPY:
        return np.dtype(_NUMPY[number])
    if number not in _ML_NAMES:
        raise TypeError(f"[onnx] expected an element type, got {number}")
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, _ML_NAMES[number]))


def type_of_array(array: np.ndarray) -> int:
    """The element type of a NumPy array."""
    if array.dtype.kind in "OUS":
        return STRING
    found = _TYPE_OF_NUMPY.get(array.dtype) or _TYPE_OF_ML.get(array.dtype.name)
    if found is None:
        raise TypeError(f"[onnx] expected an array of a type that ONNX has, got {array.dtype}")
    return found
