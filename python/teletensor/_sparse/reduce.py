"""Reductions of sparse tensors: sum, norm, any; softmax over the stored elements."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._C import Tensor
from .convert import batch_dim, coalesce, compressed_to_coo, coo_to_compressed
from .elementwise import call, unmasked
from .tensor import BLOCKS, SparseTensor, coo, handlers, layout_name, like, not_implemented

ops, torch = _C.ops, _C.torch


def _dims(dim: Any, count: int) -> list[int]:
    """The dimensions of an argument, without repetitions; all, for None and an empty list."""
    given_dims = [dim] if isinstance(dim, int) else list(dim or ())
    if not given_dims:
        return list(range(count))
    dims = []
    for d in given_dims:
        if not -max(count, 1) <= d < max(count, 1):
            raise IndexError(f"Dimension out of range (expected to be in range of [{-max(count, 1)}, {max(count, 1) - 1}], but got {d})")
        dims.append(d % max(count, 1))
    if len(set(dims)) != len(dims):
        raise RuntimeError(f"dim {dims[-1]} appears multiple times in the list of dims")
    return sorted(dims)


def sum_coo(tensor: SparseTensor, dims: list[int], dtype: Any = None) -> Tensor:
    """The sum of a sparse_coo tensor over dimensions: strided if these are all sparse dimensions, else sparse_coo.

    Values are converted before those of equal indices are added, so that a sum of bools counts them.
    """
    sparse = tensor.sparse_dim()
    kept = [d for d in range(sparse) if d not in dims]
    values = tensor._elements if dtype is None else tensor._elements.to(dtype)
    if kept and not tensor._coalesced:
        tensor = coalesce(like(tensor, values))
        values = tensor._elements
    inner = [d - sparse + 1 for d in dims if d >= sparse]
    if not kept:
        return values.sum([0, *inner])
    if inner:
        values = values.sum(inner)
    size = [n for d, n in enumerate(tensor.shape) if d not in dims]
    if len(kept) == sparse:
        return coo(tensor._coo, values, size, tensor._coalesced, tensor._dense_source)
    rows = tensor._coo.index_select(0, _C.tensor(kept, device=tensor.device))
    return coalesce(coo(rows, values, size, dense_source=tensor._dense_source))


def sparse_sum(input: SparseTensor, dim: Any = None, dtype: Any = None) -> Tensor:
    """torch.sparse.sum."""
    if not input.is_sparse:
        raise not_implemented("_sparse_sum", input)
    if isinstance(dim, bool) or not (dtype is None or isinstance(dtype, _C.dtype)):
        raise TypeError(f"sum(): expected dimensions and a dtype, got {type(dim).__name__} and {type(dtype).__name__}")
    if dim is None or (not isinstance(dim, int) and not len(dim)):
        values = coalesce(input)._elements if input.dtype is _C.bool else input._elements
        return values.sum() if dtype is None else values.sum(dtype=dtype)
    return sum_coo(input, _dims(dim, input.dim()), dtype)


def _sum(arguments: list, into: list | None) -> Any:
    tensor, dim, keepdim, dtype = arguments
    if into is not None:
        raise not_implemented("sum.out", tensor)
    dims = _dims(dim, tensor.dim())
    if dim is None or len(dims) == tensor.dim() and not keepdim:
        if dim is None:
            unmasked("sum", tensor)
        if not tensor.is_sparse and dim is not None:
            raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
        return tensor._elements.sum() if dtype is None else tensor._elements.sum(dtype=dtype)
    if dtype is None and not tensor.is_floating_point() and not tensor.is_complex():
        dtype = _C.int64
    if tensor.is_sparse:
        return _unsqueezed(sum_coo(tensor, dims, dtype), dims if keepdim else [])
    if not keepdim:
        raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
    if tensor._layout in BLOCKS or batch_dim(tensor) or tensor.dense_dim():
        raise RuntimeError(f"[sum] batches, blocks and dense dimensions of {layout_name(tensor)} are not supported: use to_dense()")
    summed = sum_coo(coalesce(compressed_to_coo(tensor)), dims, dtype)
    if len(dims) == 2:
        summed = coo(torch.zeros((2, 1), dtype=_C.int64, device=tensor.device), summed.reshape(1), (1, 1), True)
    return coo_to_compressed(_unsqueezed(summed, dims if len(dims) < 2 else []), tensor._layout)


def _unsqueezed(tensor: Any, dims: list[int]) -> Any:
    for d in dims:
        tensor = tensor.unsqueeze(d)
    return tensor


def _dist(arguments: list, into: list | None) -> Tensor:
    a, b, p = arguments
    if into is not None:
        raise not_implemented("dist.out", a if isinstance(a, SparseTensor) else b)
    return (a - b).norm(p)


def _norm(name: str):
    def handle(arguments: list, into: list | None) -> Any:
        tensor, p, dim, *_ = arguments
        if not tensor.is_sparse or into is not None:
            raise not_implemented("norm", tensor)
        if dim not in (None, []) and len(_dims(dim, tensor.dim())) < tensor.dim():
            raise RuntimeError(
                "norm_sparse currently only supports full reductions, so 'dim' must either be empty or contain all dimensions of the input"
            )
        keepdim, dtype = arguments[3:5]
        if keepdim:
            raise RuntimeError("norm_sparse currently does not support keepdim=True")
        if p == "nuc":
            raise not_implemented("norm", tensor)
        if dtype is not None:
            raise RuntimeError("norm_sparse currently does not support 'dtype' argument")
        return call(name, [coalesce(tensor)._elements, p, None, False, None])

    return handle


def _any(arguments: list, into: list | None) -> Any:
    tensor, dim, *_ = arguments
    if not tensor.is_sparse or dim is not None or into is not None:
        raise not_implemented("any", tensor)
    return tensor._elements.any()


def sparse_softmax(name: str, tensor: Tensor, dim: int, dtype: Any = None) -> SparseTensor:
    """torch.sparse.softmax and log_softmax: over the stored elements; absent ones count as minus infinity."""
    if not isinstance(tensor, SparseTensor):
        raise NotImplementedError(f"Could not run 'aten::_sparse_{name}' with arguments from the '{tensor.device.type.upper()}' backend.")
    if not tensor.is_sparse:
        raise not_implemented(f"_sparse_{name}", tensor)
    if not isinstance(dim, int) or isinstance(dim, bool):
        raise TypeError(f"{name}(): argument 'dim' (position 2) must be int, not {type(dim).__name__}")
    dim = _dims(dim, tensor.dim())[0]
    tensor = coalesce(tensor if dtype is None else tensor.to(dtype))
    if not tensor.is_floating_point():
        raise NotImplementedError(f'"softmax" not implemented for {tensor.dtype}')
    sparse, values = tensor.sparse_dim(), tensor._elements
    if dim >= sparse:
        return like(tensor, getattr(torch, name)(values, dim - sparse + 1))
    if values.numel() == 0:
        return like(tensor, values.clone())
    rest = [d for d in range(sparse) if d != dim]
    if rest:
        rows = tensor._coo.index_select(0, _C.tensor(rest, device=tensor.device))
        distinct, group = ops.sparse_unique(rows, [tensor.shape[d] for d in rest])
        groups = distinct.shape[1]
    else:
        group, groups = torch.zeros(tensor._nnz(), dtype=_C.int64, device=tensor.device), 1
    return like(tensor, ops.sparse_softmax(values, group, groups, name == "log_softmax"))


def _of_size(name: str):
    def handle(arguments: list, into: list | None) -> Any:
        raise not_implemented(f"_{name}", arguments[0])

    return handle


handlers.update(sum=_sum, any=_any, dist=_dist, softmax=_of_size("softmax"), log_softmax=_of_size("log_softmax"))
for _name in ("norm", "norm_named", "vector_norm"):
    handlers[_name] = _norm(_name)

