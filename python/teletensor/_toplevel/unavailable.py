"""Functions of the module torch for sparse layouts and quantized tensors that raise NotImplementedError."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._not_implemented import not_implemented
from . import QUANTIZED, SPARSE

spmm = dsmm = _C.torch.mm  # PyTorch's names for products with sparse matrices; strided ones are accepted too


def _add(what: str, functions: str) -> None:
    names: dict[str, Any] = {"__name__": "teletensor"}
    not_implemented(names, what, functions)
    globals().update({name: value for name, value in names.items() if name != "__name__"})


_add("there are no sparse layouts yet; use strided tensors, index_add and scatter_add", SPARSE)
_add("not implemented for quantized tensors yet", QUANTIZED)
