"""Sparse inputs and masks of torch.masked's functions: sum, prod, amax, amin and mean of sparse_coo and sparse_csr tensors."""

from __future__ import annotations

import math
from typing import Any

from .. import _C
from .._C import Tensor
from .._functions import iinfo
from .._layouts import sparse_coo, sparse_csr, strided
from .._sparse.convert import coalesce, to_dense, to_sparse
from .._sparse.tensor import SparseTensor, coo

_ops, _torch = _C.ops, _C.torch
COO, BOTH = (sparse_coo,), (sparse_coo, sparse_csr)
# The sparse layouts that a reduction accepts; its values without elements. Only sum has elements of which none is stored.
LAYOUTS = {"sum": BOTH, "prod": BOTH, "amax": BOTH, "amin": BOTH, "mean": (sparse_csr,)}


def identity(name: str, dtype: Any) -> Any:
    """The result of a reduction of no elements, which does not change those of others."""
    if name in ("sum", "mean"):
        return 0
    if name == "prod":
        return 1
    if dtype.is_floating_point or dtype.is_complex:
        return -math.inf if name == "amax" else math.inf
    if dtype is _C.bool:
        return name == "amin"
    return iinfo(dtype).min if name == "amax" else iinfo(dtype).max


def input_mask(input: Tensor, mask: Tensor) -> Tensor:
    """A mask of any layout as a bool tensor of the input's size and layout; of sparse_coo, coalesced."""
    if input.layout not in (strided, sparse_coo, sparse_csr):
        raise ValueError(f"_input_mask expects strided or sparse COO or sparse CSR tensor but got {input.layout}")
    if mask.dim() > input.dim():
        raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
    if mask.shape != input.shape or mask.layout not in (input.layout, strided):
        mask = _torch.broadcast_to(to_dense(mask) if isinstance(mask, SparseTensor) else mask, input.shape)
    if mask.layout != input.layout:
        if input.layout == strided:
            mask = to_dense(mask)
        else:
            mask = to_sparse(mask, input.sparse_dim()) if input.is_sparse else to_sparse(mask, layout=sparse_csr)
    return (coalesce(mask) if mask.is_sparse else mask).to(_C.bool)


def where(input: SparseTensor, mask: SparseTensor, otherwise: Any) -> SparseTensor:
    """The input at the indices of the mask's true elements: 0 where it has no element, `otherwise` where dense parts are masked out."""
    values = mask._elements
    kept = (values.reshape(values.shape[0], -1).any(1) if values.dim() > 1 else values).nonzero()[:, 0]
    indices = mask._coo.index_select(1, kept)
    found = input.sparse_mask(coo(indices, values.index_select(0, kept), input.shape, True))
    if values.dim() == 1:
        return found
    filled = _torch.full([], otherwise, dtype=input.dtype, device=input.device)
    return coo(indices, _torch.where(values.index_select(0, kept), found._elements, filled), input.shape, True)


def reduced(name: str, input: SparseTensor, dims: list[int], keepdim: bool, dtype: Any, mask: Tensor | None) -> SparseTensor:
    """A reduction of the elements at which the mask is true; elements that are not stored are zeros. The layout is the input's."""
    if input.layout not in LAYOUTS[name]:
        allowed = ", ".join(str(kind) for kind in (strided, *LAYOUTS[name]))
        raise ValueError(f"masked {name} expects {allowed} tensor (got {input.layout} tensor)")
    if mask is None and name != "sum":
        raise ValueError(f"masked {name} expects explicit mask for {str(input.layout).removeprefix('torch.')} tensor input")
    if not input.is_sparse and not keepdim:
        raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
    entries = coalesce(to_sparse(input))
    if mask is not None:
        entries = where(entries, input_mask(entries, mask), identity(name, input.dtype))
    dims = [d % input.dim() for d in dims if input.dim()]
    if len({d for d in dims if d < entries.sparse_dim()}) < entries.sparse_dim():
        result = _reduced_rows(name, entries, dims, keepdim, dtype)
        return result if input.is_sparse else to_sparse(result, layout=sparse_csr)
    result = _reduced_all(name, entries, dims, keepdim, dtype)
    if input.is_sparse or not entries._nnz():
        return to_sparse(result, layout=input.layout)
    return to_sparse(coo(_torch.zeros([2, 1], dtype=_C.int64, device=input.device), result.reshape(1), [1, 1], True), layout=sparse_csr)


def _reduced_all(name: str, tensor: SparseTensor, dims: list[int], keepdim: bool, dtype: Any) -> Tensor:
    """A reduction over all sparse dimensions, and perhaps dense ones: strided."""
    values = _along(name, tensor._elements.to(dtype), [d - tensor.sparse_dim() + 1 for d in dims if d >= tensor.sparse_dim()], keepdim)
    if values.shape[0] or name in ("sum", "prod"):
        values = _along(name, values, [0], False)
    else:
        filler = math.nan if name == "mean" else identity(name, dtype)
        values = _torch.full(list(values.shape[1:]), filler, dtype=dtype, device=values.device)
    return values.reshape([1 if d in dims else n for d, n in enumerate(tensor.shape) if keepdim or d not in dims])


def _reduced_rows(name: str, tensor: SparseTensor, dims: list[int], keepdim: bool, dtype: Any) -> SparseTensor:
    sparse, device = tensor.sparse_dim(), tensor.device
    values = _along(name, tensor._elements.to(dtype), [d - sparse + 1 for d in dims if d >= sparse], keepdim)
    reduced_rows = [d for d in dims if d < sparse]
    size = [1 if d in dims else n for d, n in enumerate(tensor.shape) if keepdim or d not in dims]
    if not reduced_rows:
        return coo(tensor._coo, values, size, True)
    kept = [d for d in range(sparse) if d not in reduced_rows]
    rows = tensor._coo.index_select(0, _C.tensor(kept, device=device))
    distinct, group = _ops.sparse_unique(rows, [tensor.shape[d] for d in kept])
    zeros = _torch.zeros([distinct.shape[1]], dtype=_C.int64, device=device)
    if keepdim:
        distinct = _torch.stack([distinct[kept.index(d)] if d in kept else zeros for d in range(sparse)])
    wide = values.to(_C.float32) if dtype in (_C.bfloat16, _C.float16) else values
    empty = _torch.full([zeros.shape[0], *wide.shape[1:]], identity(name, dtype), dtype=wide.dtype, device=device)
    if name == "sum":
        found = empty.index_add(0, group, wide)
    else:
        found = empty.index_reduce(0, group, wide, name, include_self=False)
    return coo(distinct, found.to(dtype), size, True)


def _along(name: str, values: Tensor, dims: list[int], keepdim: bool) -> Tensor:
    if not dims:
        return values
    if name != "prod":
        reduced_values = getattr(values, name)(dims, keepdim)
        return reduced_values.to(values.dtype)
    for d in sorted(dims, reverse=True):
        values = values.prod(d, keepdim).to(values.dtype)
    return values
