"""torch.types: types of arguments, for annotations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO, Any, Union

from . import _C
from ._C import Size, Tensor
from ._C import device as _device  # noqa: F401 - PyTorch defines it here
from ._C import dtype as _dtype  # noqa: F401 - PyTorch defines it here
from ._storage import UntypedStorage as Storage

__all__ = ["Device", "FileLike", "Number", "Storage"]

Number = Union[int, float, bool]
_Number = (int, float, bool)
Device = Union[_C.device, str, int, None]
FileLike = Union[str, os.PathLike, IO[bytes]]
IntLikeType, FloatLikeType, BoolLikeType = int, float, bool  # there are no symbolic numbers
PySymType = Union[int, float, bool]
py_sym_types: tuple[type, ...] = ()

_bool, _bytes, _complex, _float, _int, _str = bool, bytes, complex, float, int, str
_size = Union[Size, list[int], tuple[int, ...]]
_symsize = Union[Size, Sequence[int]]
_layout = _qscheme = _dispatchkey = str  # teletensor names layouts by text
_TensorOrTensors = Union[Tensor, Sequence[Tensor]]
_TensorOrOptionalTensors = Union[Tensor, Sequence[Any]]
_TensorOrTensorsOrGradEdge = Union[Tensor, Sequence[Tensor]]
