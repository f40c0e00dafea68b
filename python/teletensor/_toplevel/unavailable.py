"""Functions of the module torch for sparse layouts and quantized dtypes; they raise NotImplementedError."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._C import Tensor
from .._not_implemented import not_implemented
from . import QUANTIZED, SPARSE

spmm = dsmm = _C.torch.mm  # PyTorch's names for products with sparse matrices; strided ones are accepted too


def dequantize(input: Tensor | None = None, *, tensors: Any = None) -> Any:
    """The values of a tensor as float32, or those of each tensor of a list, which may be passed as ``tensors``."""
    if (input is None) == (tensors is None):
        raise TypeError("dequantize() expected a tensor or a list of tensors")
    given = tensors if input is None else input
    return given.to(_C.float32) if isinstance(given, Tensor) else tuple(t.to(_C.float32) for t in given)


dequantize.__overloads__ = ("input", "tensors")


def _add(what: str, functions: str) -> None:
    names: dict[str, Any] = {"__name__": "teletensor"}
    not_implemented(names, what, functions)
    globals().update({name: value for name, value in names.items() if name != "__name__"})


_add("there are no sparse layouts yet; use strided tensors, index_add and scatter_add", SPARSE)
_add(
    "there are no quantized dtypes yet; fake_quantize_per_tensor_affine and fake_quantize_per_channel_affine simulate them", QUANTIZED
)
