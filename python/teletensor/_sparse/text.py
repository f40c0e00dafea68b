"""repr() of sparse tensors, in PyTorch's notation, and their pickles."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._C import Tensor
from .._tensor_str import _add_suffixes, _tensor_str
from .tensor import ROWS, SparseTensor, compressed, coo, hooks


def _part(name: str, values: Tensor, indent: int) -> str:
    prefix = f"{name}=tensor("
    body = _tensor_str(values, indent + len(prefix)) if values.numel() else "[]"
    suffix = "" if values.numel() else f", size={tuple(values.shape)}"
    return f"{prefix}{body}{suffix})"


def _components(tensor: SparseTensor) -> list[tuple[str, Tensor]]:
    if tensor.is_sparse:
        return [("indices", tensor._coo), ("values", tensor._elements.detach())]
    names = ("crow_indices", "col_indices") if tensor._layout in ROWS else ("ccol_indices", "row_indices")
    return [(names[0], tensor._compressed), (names[1], tensor._plain), ("values", tensor._elements.detach())]


def sparse_str(tensor: SparseTensor, contents: str | None = None) -> str:
    """The text of a sparse tensor. Waits for the values, unless `contents` replaces them."""
    prefix = "tensor("
    indent = len(prefix)
    suffixes = [] if tensor.device.type == _C.default_device().type else [f"device='{tensor.device}'"]
    suffixes.append(f"size={tuple(tensor.shape)}")
    if tensor.device.type != "meta":
        suffixes.append(f"nnz={tensor._nnz()}")
    usual = (_C.default_dtype(), _C.int64, _C.bool, _C.complex128 if _C.default_dtype() is _C.float64 else _C.complex64)
    if tensor.dtype not in usual:
        suffixes.append(f"dtype={tensor.dtype}")
    if contents is None and tensor.device.type == "meta":
        contents = "..."
    if contents is None:
        contents = (",\n" + " " * indent).join(_part(name, values, indent) for name, values in _components(tensor))
    suffixes.append(f"layout={tensor.layout}")
    if tensor.grad_fn is not None:
        suffixes.append(f"grad_fn=<{tensor.grad_fn.name()}>")
    elif tensor.requires_grad:
        suffixes.append("requires_grad=True")
    return _add_suffixes(prefix + contents, suffixes, indent, force_newline=tensor.is_sparse)


def _unpickled(layout: Any, parts: tuple, size: tuple, coalesced: bool, requires_grad: bool) -> SparseTensor:
    made = coo(*parts, size, coalesced) if len(parts) == 2 else compressed(layout, *parts, size)
    made.requires_grad = requires_grad
    return made


def reduce(tensor: SparseTensor) -> tuple:
    """__reduce_ex__ of a sparse tensor, for processes of the same user. Waits for the engine."""
    values = tensor._elements.detach()
    parts = (tensor._coo, values) if tensor.is_sparse else (tensor._compressed, tensor._plain, values)
    return _unpickled, (tensor._layout, parts, tuple(tensor.shape), tensor.is_sparse and tensor._coalesced, tensor.requires_grad)


hooks.update(repr=sparse_str, reduce=reduce)
