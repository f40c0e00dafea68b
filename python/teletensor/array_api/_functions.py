"""All names of the package: its functions, constants and dtypes."""

from __future__ import annotations

from math import e, inf, nan, pi

from .._C import device
from . import _creation, _dtypes, _elementwise, _manipulation, _reductions, _searching, fft, linalg
from . import _operators as _operators
from ._array import Array, as_array_functions
from ._info import __array_namespace_info__

__array_api_version__ = "2024.12"
__all__ = [
    "Array", "__array_api_version__", "__array_namespace_info__", "device", "e", "fft", "inf", "linalg", "matmul",
    "matrix_transpose", "nan", "newaxis", "pi", "tensordot", "vecdot",
]  # fmt: skip

newaxis = None
matmul, matrix_transpose, tensordot, vecdot = linalg.matmul, linalg.matrix_transpose, linalg.tensordot, linalg.vecdot

_names = _dtypes.dtypes_of(None)
for _module in (_creation, _dtypes, _elementwise, _manipulation, _reductions, _searching):
    _names |= as_array_functions(_module)
globals().update(_names)
__all__ += _names
