"""Conversions between strided and sparse tensors and between sparse layouts; coalescing; masks."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._C import Tensor
from .._integers import repeated
from .._layouts import layout as layout_type
from .._layouts import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided
from .._ops.shape import unravel_index
from .._options import check_flags, check_memory_format
from .tensor import BLOCKS, NAMES, ROWS, SparseTensor, compressed, coo, hooks, layout_name, like

ops, torch = _C.ops, _C.torch


def sparse_sizes(tensor: SparseTensor) -> list[int]:
    """The sizes of the sparse dimensions of a sparse_coo tensor."""
    return list(tensor.shape[: tensor.sparse_dim()])


def coalesce(tensor: SparseTensor) -> SparseTensor:
    """A sparse_coo tensor with sorted, distinct indices."""
    if tensor._coalesced:
        return tensor
    if tensor.sparse_dim() == 0:
        values = tensor._elements
        if values.shape[0] > 1:
            values = values.sum(0, keepdim=True)
        return coo(tensor._coo[:, : values.shape[0]], values, tensor.shape, True, tensor._dense_source)
    if tensor._elements.numel() == 0 and tensor._nnz() > 0:  # dense dimensions of size 0: the engine adds no values
        indices, _ = ops.sparse_unique(tensor._coo, sparse_sizes(tensor))
        values = tensor._elements[: indices.shape[1]]
        return coo(indices, values, tensor.shape, True, tensor._dense_source)
    indices, values, _ = ops.sparse_coalesce(tensor._coo, tensor._elements, sparse_sizes(tensor))
    return coo(indices, values, tensor.shape, True, tensor._dense_source)


def rows_of(tensor: SparseTensor) -> Tensor:
    """The compressed row indices, [n + 1], of a coalesced sparse_coo matrix."""
    version = tensor._coo._version
    if tensor._rows is None or tensor._rows_version != version:
        tensor._rows, tensor._rows_version = ops.sparse_compress(tensor._coo[0], tensor.shape[0]), version
    return tensor._rows


# -- strided and sparse_coo


def _requires_grad(tensor: Tensor) -> bool:
    return tensor.requires_grad and _C.is_grad_enabled()


def dense_to_coo(dense: Tensor, sparse_dim: int) -> SparseTensor:
    """The elements, or slices of the last dimensions, with a value other than zero."""
    if dense.dim() == 0:
        row = dense.reshape(1)
        values = row[row.detach() != 0]
        indices = torch.zeros((0, values.shape[0]), dtype=_C.int64, device=dense.device)
        return coo(indices, values, (), True, _requires_grad(dense))
    indices = ops.sparse_nonzero(dense.detach(), sparse_dim)
    return coo(indices, ops.sparse_gather(dense, indices), dense.shape, True, _requires_grad(dense))


def coo_to_dense(tensor: SparseTensor) -> Tensor:
    """The strided tensor with the values; those of equal indices are added."""
    if tensor.sparse_dim() == 0:
        return tensor._elements.sum(0).to(tensor.dtype)
    return ops.sparse_scatter(tensor._coo, tensor._elements, sparse_sizes(tensor))


# -- compressed layouts: batches are flattened, and row- and column-compressed tensors differ in the order of two dimensions


def block_of(tensor: SparseTensor) -> tuple[int, int]:
    """The sizes of a block: (1, 1) if the layout has none."""
    if tensor._layout not in BLOCKS:
        return 1, 1
    first = tensor._plain.dim()
    return tensor._elements.shape[first], tensor._elements.shape[first + 1]


def batch_dim(tensor: SparseTensor) -> int:
    """The number of batch dimensions."""
    return tensor._plain.dim() - 1


def compressed_dim_sizes(tensor: SparseTensor) -> tuple[int, int]:
    """The number of rows and columns, in blocks."""
    b, (p, q) = batch_dim(tensor), block_of(tensor)
    return tensor.shape[b] // p, tensor.shape[b + 1] // q


def _entries(tensor: SparseTensor) -> tuple[Tensor, Tensor]:
    """The indices [(batch,) row, column] of a compressed tensor's elements or blocks, int64 [2 or 3, N], and its values [N, ...]."""
    batches, nnz = tensor._plain.shape[:-1].numel(), tensor._plain.shape[-1]
    outer = ops.sparse_expand(tensor._compressed, nnz)
    pair = [outer, tensor._plain] if tensor._layout in ROWS else [tensor._plain, outer]
    rows = [t.reshape(-1).to(_C.int64) for t in pair]
    b = batch_dim(tensor)
    values = tensor._elements
    if b:
        rows.insert(0, torch.arange(batches, device=values.device).repeat_interleave(nnz))
        values = values.reshape(batches * nnz, *values.shape[b + 1 :])
    return torch.stack(rows), values


def compressed_to_dense(tensor: SparseTensor) -> Tensor:
    """The strided tensor with the values of a compressed layout."""
    indices, values = _entries(tensor)
    b, (n, m) = batch_dim(tensor), compressed_dim_sizes(tensor)
    batches = tensor.shape[:b].numel()
    dense = ops.sparse_scatter(indices, values, [*([batches] if b else []), n, m])
    if tensor._layout in BLOCKS:
        k = 1 if b else 0
        rest = range(k + 4, dense.dim())
        dense = dense.permute(*range(k), k, k + 2, k + 1, k + 3, *rest)
    return dense.reshape(tensor.shape)


def compressed_to_coo(tensor: SparseTensor) -> SparseTensor:
    """The same elements as sparse_coo, in the order of the compressed layout."""
    indices, values = _entries(tensor)
    b, (p, q) = batch_dim(tensor), block_of(tensor)
    if b > 1:
        indices = torch.cat([torch.stack(list(unravel_index(indices[0], tensor.shape[:b]))), indices[1:]])
    if tensor._layout in BLOCKS:
        count = values.shape[0]
        inner = torch.arange(p * q, device=values.device)
        rows = (indices[b].reshape(-1, 1) * p + inner // q).reshape(-1)
        columns = (indices[b + 1].reshape(-1, 1) * q + inner % q).reshape(-1)
        outer = [indices[i].repeat_interleave(p * q) for i in range(b)]
        indices = torch.stack([*outer, rows, columns])
        values = values.reshape(count * p * q, *values.shape[3:])
    return coo(indices, values, tensor.shape, tensor._layout == sparse_csr, tensor._dense_source)


def coo_to_compressed(tensor: SparseTensor, kind: layout_type, blocksize: Any = None) -> SparseTensor:
    """A sparse_coo matrix, with or without dense dimensions, as a compressed layout."""
    if tensor.sparse_dim() != 2:
        raise RuntimeError(
            f"coo_to_sparse_{str(kind)[-3:]}: conversion from Sparse to {NAMES[str(kind)]} for input tensors with sparse_dim()!=2 is "
            "not supported"
        )
    tensor = coalesce(tensor)
    if kind in BLOCKS:
        return _coo_to_blocks(tensor, kind, *_checked_block("coo", kind, tensor, blocksize, 0))
    indices, values = tensor._coo, tensor._elements
    if kind == sparse_csr:
        return compressed(kind, rows_of(tensor), indices[1], values, tensor.shape, tensor._dense_source)
    flipped = coalesce(coo(indices.flip(0), values, (tensor.shape[1], tensor.shape[0], *tensor.shape[2:])))
    return compressed(kind, rows_of(flipped), flipped._coo[1], flipped._elements, tensor.shape, tensor._dense_source)


def _coo_to_blocks(tensor: SparseTensor, kind: layout_type, p: int, q: int) -> SparseTensor:
    n, m = tensor.shape[0] // p, tensor.shape[1] // q
    (row, column), values = tensor._coo, tensor._elements
    block = [row // p, column // q] if kind == sparse_bsr else [column // q, row // p]
    sizes = [n, m] if kind == sparse_bsr else [m, n]
    distinct, inverse = ops.sparse_unique(torch.stack(block), sizes)
    places = torch.stack([inverse, row % p, column % q])
    blocks = ops.sparse_scatter(places, values, [distinct.shape[1], p, q])
    outer = ops.sparse_compress(distinct[0], sizes[0])
    return compressed(kind, outer, distinct[1], blocks, tensor.shape, tensor._dense_source)


def _checked_block(source: str, kind: layout_type, tensor: Tensor, blocksize: Any, batch: int) -> tuple[int, int]:
    """The sizes of a block as PyTorch accepts them."""
    name = f"{source}_to_{str(kind).removeprefix('torch.')}"
    if blocksize is None:
        raise RuntimeError(
            f"{source}_to_sparse: conversion from {layout_name(tensor)} to {NAMES[str(kind)]} without blocksize argument given is not "
            "supported"
        )
    p, q = (int(v) for v in repeated(blocksize, 2))
    if p < 1 or q < 1:
        raise RuntimeError(f"{name}: blocksize needs to be positive, but got ({p}, {q})")
    n, m = tensor.shape[batch], tensor.shape[batch + 1]
    if n % p or m % q:
        raise RuntimeError(f"{name}: tensor sparse size ({n},{m}) must be divisible by given blocksize ({p},{q})")
    return p, q


def dense_to_compressed(dense: Tensor, kind: layout_type, blocksize: Any, dense_dim: int | None) -> SparseTensor:
    """The elements or blocks of a strided tensor with a value other than zero, in a compressed layout."""
    short, k = str(kind).removeprefix("torch."), dense_dim or 0
    if dense.dim() < 2:
        raise IndexError(f"dense_to_{short}: expected at least 2 dimensions, got {dense.dim()}")
    if not 0 <= k <= dense.dim() - 2:
        raise RuntimeError(f"dense_to_{short}: dense_dim argument must be in [0,{dense.dim() - 2}] range, but {dense_dim} is given")
    b = dense.dim() - 2 - k
    n, m = dense.shape[b], dense.shape[b + 1]
    p, q = _checked_block("dense", kind, dense, blocksize, b) if kind in BLOCKS else (1, 1)
    batches = dense.shape[:b].numel()
    if b and batches == 0:
        raise RuntimeError(f"dense_to_{short}: expected batches, got a tensor of size {list(dense.shape)}")
    x = dense.reshape(batches, n, m, *dense.shape[b + 2 :])
    if kind in BLOCKS:
        x = x.reshape(batches, n // p, p, m // q, q, *dense.shape[b + 2 :]).transpose(2, 3)
    if kind not in ROWS:
        x = x.transpose(1, 2)
    indices = ops.sparse_nonzero(x.detach(), 3)
    values = ops.sparse_gather(x, indices)
    batch, outer, inner = indices[0], indices[1], indices[2]
    count = indices.shape[1] // batches
    if batches > 1:
        counts = torch.bincount(batch, minlength=batches)
        if indices.shape[1] % batches or bool((counts != count).any()):
            raise RuntimeError(f"dense_to_{short}: Expect the same number of specified elements per batch.")
    lead = tuple(dense.shape[:b])
    compress = ops.sparse_compress(outer.reshape(*lead, count), x.shape[1])
    return compressed(
        kind, compress, inner.reshape(*lead, count), values.reshape(*lead, count, *values.shape[1:]), dense.shape, _requires_grad(dense)
    )


def _flipped(tensor: SparseTensor, kind: layout_type) -> SparseTensor:
    """sparse_csr as sparse_csc and the reverse; the same of blocks."""
    b, (n, m) = batch_dim(tensor), compressed_dim_sizes(tensor)
    inner = m if tensor._layout in ROWS else n
    outer, plain, order = ops.sparse_transpose(tensor._compressed, tensor._plain, inner)
    lead, count = tensor._plain.shape[:b], tensor._plain.shape[-1]
    values = tensor._elements.reshape(lead.numel() * count, *tensor._elements.shape[b + 1 :])
    values = values.index_select(0, order.reshape(-1)).reshape(tensor._elements.shape)
    return compressed(kind, outer, plain, values, tensor.shape, tensor._dense_source)


def compressed_to(tensor: SparseTensor, kind: layout_type, blocksize: Any) -> SparseTensor:
    """A compressed tensor in a compressed layout."""
    if kind in BLOCKS and tensor._layout in BLOCKS:
        block = block_of(tensor)
        if blocksize is not None and repeated(blocksize, 2) != block:
            raise RuntimeError(
                f"to_{str(kind).removeprefix('torch.')}: conversion from {layout_name(tensor)} to {NAMES[str(kind)]} with blocksize "
                f"changed from {list(block)} to {list(blocksize)} is not supported"
            )
    if kind == tensor._layout:
        return tensor
    if (kind in BLOCKS) == (tensor._layout in BLOCKS):
        return _flipped(tensor, kind)
    if batch_dim(tensor):
        raise NotImplementedError(
            f"[to_sparse] the conversion of batches from {layout_name(tensor)} to {NAMES[str(kind)]} is not supported: use to_dense()"
        )
    found, dtype = coo_to_compressed(compressed_to_coo(tensor), kind, blocksize), tensor._plain.dtype
    return compressed(kind, found._compressed.to(dtype), found._plain.to(dtype), found._elements, tensor.shape, tensor._dense_source)


def in_layout(tensor: SparseTensor, like: SparseTensor, name: str) -> SparseTensor:
    """The second operand of an operator on elements, in the layout of the first, with its blocks."""
    if tensor._layout == like._layout:
        return tensor
    if tensor.shape != like.shape or tensor.dense_dim() != like.dense_dim():
        raise RuntimeError(f"[{name}] expected sparse tensors of one size, got {list(like.shape)} and {list(tensor.shape)}")
    if like.is_sparse:
        return compressed_to_coo(tensor)
    if tensor.is_sparse:
        return coo_to_compressed(tensor, like._layout, block_of(like))
    if (tensor._layout in BLOCKS) == (like._layout in BLOCKS) and block_of(tensor) == block_of(like):
        return _flipped(tensor, like._layout)
    if batch_dim(tensor):
        raise NotImplementedError(f"[{name}] expected batches of one layout, got {layout_name(like)} and {layout_name(tensor)}")
    return coo_to_compressed(compressed_to_coo(tensor), like._layout, block_of(like))


# -- what users call


def to_dense(tensor: SparseTensor, dtype: Any = None, masked_grad: bool | None = None) -> Tensor:
    """Tensor.to_dense() of a sparse tensor."""
    if dtype is not None:
        raise RuntimeError("dtype argument is not supported by sparse_to_dense")
    if masked_grad is False and tensor.requires_grad and _C.is_grad_enabled():
        raise NotImplementedError("[to_dense] masked_grad=False: the gradient of a sparse tensor has the indices of the tensor")
    return coo_to_dense(tensor) if tensor.is_sparse else compressed_to_dense(tensor)


def to_sparse(
    tensor: Tensor, sparse_dim: int | None = None, *, layout: layout_type | None = None, blocksize: Any = None, dense_dim: int | None = None
) -> SparseTensor:
    """Tensor.to_sparse(): of any tensor, to any layout."""
    kind = sparse_coo if layout is None else layout
    if kind == strided and not isinstance(tensor, SparseTensor) and blocksize is None and sparse_dim is None:
        if dense_dim not in (None, 0):
            raise RuntimeError(f"to_sparse: dense_dim argument must be in [0,0] range, but {dense_dim} is given")
        return tensor
    if kind == strided and blocksize is None and sparse_dim is None and dense_dim is None:
        return to_dense(tensor)
    if str(kind) not in NAMES or kind == strided:
        raise RuntimeError(f"to_sparse: conversion from {layout_name(tensor)} to {kind} layout is not supported")
    if kind not in BLOCKS and blocksize is not None:
        raise RuntimeError(
            f"to_sparse: conversion from {layout_name(tensor)} to {NAMES[str(kind)]} with blocksize argument given is not supported"
        )
    if kind != sparse_coo and sparse_dim is not None:
        raise RuntimeError(f"to_sparse: sparse_dim argument is not supported for the layout {NAMES[str(kind)]}")
    if kind == sparse_coo:
        if dense_dim is None:
            return _to_coo(tensor, sparse_dim)
        if isinstance(tensor, SparseTensor) or sparse_dim is not None:
            raise RuntimeError("to_sparse: conversion to Sparse with dense_dim argument given is not supported")
        if not 0 <= dense_dim <= tensor.dim():
            raise RuntimeError(f"dense_to_sparse: dense_dim argument must be in [0,{tensor.dim()}] range, but {dense_dim} is given")
        if dense_dim == tensor.dim() > 0:
            raise RuntimeError("dense_to_sparse: dense_dim argument must be !=self.dim() when self.dim()>0")
        return _to_coo(tensor, tensor.dim() - dense_dim)
    if not isinstance(tensor, SparseTensor):
        return dense_to_compressed(tensor, kind, blocksize, dense_dim)
    if dense_dim is not None and dense_dim != tensor.dense_dim():
        raise RuntimeError(
            f"to_sparse: conversion from {layout_name(tensor)} to {NAMES[str(kind)]} with dense_dim argument !=self.dense_dim() is not "
            "supported"
        )
    return coo_to_compressed(tensor, kind, blocksize) if tensor.is_sparse else compressed_to(tensor, kind, blocksize)


def _to_coo(tensor: Tensor, sparse_dim: int | None) -> SparseTensor:
    if isinstance(tensor, SparseTensor):
        if sparse_dim is not None and sparse_dim != tensor.sparse_dim():
            raise RuntimeError(
                f"to_sparse: conversion from {layout_name(tensor)} to Sparse with sparse_dim argument !=self.sparse_dim() is not supported"
            )
        return tensor if tensor.is_sparse else compressed_to_coo(tensor)
    if sparse_dim is None:
        return dense_to_coo(tensor, tensor.dim())
    if sparse_dim == 0 and tensor.dim() > 0:
        raise RuntimeError("dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0")
    if not 0 <= sparse_dim <= tensor.dim():
        raise RuntimeError(f"dense_to_sparse: sparse_dim argument must be in [0,{tensor.dim()}] range, but {sparse_dim} is given")
    return dense_to_coo(tensor, sparse_dim)


def to(tensor: SparseTensor, *args: Any, dtype: Any = None, device: Any = None, other: Any = None, non_blocking: bool = False,
       copy: bool = False, memory_format: Any = None) -> SparseTensor:  # fmt: skip
    """Tensor.to() of a sparse tensor."""
    check_flags("to", non_blocking=non_blocking, copy=copy)
    check_memory_format("to", memory_format)
    flags = [arg for arg in args if isinstance(arg, bool)]
    copy = copy or flags[1:] == [True]
    for arg in (*args, *(() if other is None else (other,))):
        if isinstance(arg, _C.dtype) or any(arg is kind for kind in (float, int, bool, complex)):
            dtype = arg
        elif isinstance(arg, Tensor):
            dtype, device = arg.dtype, arg.device
        elif not isinstance(arg, bool) and arg is not None:
            device = arg
    result = moved(tensor, dtype, tensor.device if device is None else _C.placed(device), copy)
    if memory_format not in (None, "torch.preserve_format") and result is not tensor:
        raise RuntimeError("memory format option is only supported by strided tensors")
    return result


def moved(tensor: SparseTensor, dtype: Any, device: Any, copy: bool = False) -> SparseTensor:
    """The tensor with another dtype and on another device; the tensor itself if both are its own and it is not copied."""
    values = tensor._elements.to(device, tensor.dtype if dtype is None else dtype, copy=copy)
    if values is tensor._elements:
        return tensor
    if tensor.is_sparse:
        return coo(tensor._coo.to(device, copy=copy), values, tensor.shape, tensor._coalesced, tensor._dense_source)
    outer, plain = tensor._compressed.to(device, copy=copy), tensor._plain.to(device, copy=copy)
    return compressed(tensor._layout, outer, plain, values, tensor.shape, tensor._dense_source)


def entries_coo(tensor: SparseTensor) -> SparseTensor:
    """The entries of a compressed tensor as sparse_coo [batches, outer, inner, (*block,) *dense], in the layout's order."""
    indices, values = _entries(tensor)
    if not batch_dim(tensor):
        indices = torch.cat([torch.zeros((1, indices.shape[1]), dtype=_C.int64, device=values.device), indices])
    grid = compressed_dim_sizes(tensor)
    if tensor._layout not in ROWS:
        indices, grid = torch.stack([indices[0], indices[2], indices[1]]), grid[::-1]
    batches = tensor.shape[: batch_dim(tensor)].numel()
    return coo(indices, values, (batches, *grid, *values.shape[1:]), False, tensor._dense_source)


def from_entries(entries: SparseTensor, tensor: SparseTensor, name: str) -> SparseTensor:
    """The inverse of entries_coo() for the layout and sizes of a tensor. The batches must have equally many entries."""
    entries = coalesce(entries)
    (batch, outer, inner), values = entries._coo, entries._elements
    lead, total = tuple(tensor.shape[: batch_dim(tensor)]), values.shape[0]
    batches = entries.shape[0]
    count = total // max(batches, 1)
    if batches > 1 and (total % batches or bool((torch.bincount(batch, minlength=batches) != count).any())):
        raise RuntimeError(f"[{name}] expected the same number of elements in each batch of the result, as {layout_name(tensor)} has")
    compress = ops.sparse_compress(outer.reshape(*lead, count), entries.shape[1])
    return compressed(
        tensor._layout, compress, inner.reshape(*lead, count), values.reshape(*lead, count, *values.shape[1:]), tensor.shape,
        entries._dense_source,
    )  # fmt: skip


def blocks_of(tensor: Tensor, mask: SparseTensor) -> Tensor:
    """The values of a strided tensor at the indices of a mask with a compressed layout, in the mask's order."""
    indices, _ = _entries(mask)
    b, (p, q) = batch_dim(mask), block_of(mask)
    x = tensor.reshape(mask.shape[:b].numel(), *tensor.shape[b:]) if b else tensor
    if mask._layout in BLOCKS:
        k = 1 if b else 0
        n, m = compressed_dim_sizes(mask)
        x = x.reshape(*x.shape[:k], n, p, m, q, *x.shape[k + 2 :]).transpose(k + 1, k + 2)
    values = ops.sparse_gather(x, indices)
    return values.reshape(*mask._plain.shape, *values.shape[1:])


def sparse_mask(tensor: Tensor, mask: SparseTensor) -> SparseTensor:
    """Tensor.sparse_mask(): the values of a tensor at the indices of a sparse one."""
    if not isinstance(mask, SparseTensor):
        raise RuntimeError("sparse_mask(): mask should be sparse, got a strided tensor")
    if tensor.shape != mask.shape:
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(tensor.shape)} but mask has size {list(mask.shape)}"
        )
    if not isinstance(tensor, SparseTensor):
        if not mask.is_sparse:
            return like(mask, blocks_of(tensor, mask))
        if mask.sparse_dim() == 0:
            return like(mask, tensor.expand(mask._elements.shape))
        return coo(mask._coo, ops.sparse_gather(tensor, mask._coo), mask.shape, mask._coalesced)
    if tensor._layout != mask._layout:
        if not tensor.is_sparse:
            raise RuntimeError(f"sparse_mask(): expected tensors of one layout, got {layout_name(tensor)} and {layout_name(mask)}")
        tensor = coo_to_compressed(tensor, mask._layout, block_of(mask) if mask._layout in BLOCKS else None)
    elif mask.is_sparse:
        return tensor.clone() if mask is tensor else _coo_mask(tensor, mask)
    elif not batch_dim(mask) and mask._layout not in BLOCKS:  # without the indices that the tensor lacks, as in PyTorch
        return coo_to_compressed(hooks["both"](compressed_to_coo(tensor), compressed_to_coo(mask)), mask._layout)
    values = _coo_mask(entries_coo(tensor), entries_coo(mask))._elements
    return like(mask, values.reshape(mask._elements.shape))


def _coo_mask(tensor: SparseTensor, mask: SparseTensor) -> SparseTensor:
    tensor = coalesce(tensor)
    if tensor.sparse_dim() != mask.sparse_dim():
        raise RuntimeError("sparse_mask(): the number of sparse dimensions in `self` should match that of the `mask`.")
    at = coalesce(mask) if not mask._coalesced else mask
    sizes = sparse_sizes(tensor)
    first, second = ops.sparse_intersection(tensor._coo, at._coo, sizes)
    zeros = torch.zeros((at._nnz(), *tensor._elements.shape[1:]), dtype=tensor.dtype, device=tensor.device)
    values = zeros.index_copy(0, second, tensor._elements.index_select(0, first))
    if at is not mask:  # each index of the mask, also repeated ones, has the value
        _, inverse = ops.sparse_unique(mask._coo, sizes)
        values = values.index_select(0, inverse)
    return coo(mask._coo, values, mask.shape, mask._coalesced, tensor._dense_source)


def aligned(tensor: SparseTensor, gradient: Tensor) -> Tensor:
    """The values of a gradient at the indices of a tensor."""
    if gradient.shape != tensor.shape:
        raise RuntimeError(f"expected a gradient of size {list(tensor.shape)}, got {list(gradient.shape)}")
    if not isinstance(gradient, SparseTensor):
        return sparse_mask(gradient, tensor)._elements
    if gradient._layout == tensor._layout:
        same = gradient._coo is tensor._coo if tensor.is_sparse else gradient._plain is tensor._plain
        if same:
            return gradient._elements
        if tensor.is_sparse and gradient.sparse_dim() == tensor.sparse_dim():
            return sparse_mask(gradient, tensor)._elements
    return sparse_mask(to_dense(gradient), tensor)._elements


hooks.update(coalesce=coalesce, to_dense=to_dense, to=to, aligned=aligned)


def to_sparse_coo(tensor: Tensor) -> SparseTensor:
    """Tensor.to_sparse_coo()."""
    return to_sparse(tensor)


def to_sparse_csr(tensor: Tensor, dense_dim: int | None = None) -> SparseTensor:
    """Tensor.to_sparse_csr()."""
    return to_sparse(tensor, layout=sparse_csr, dense_dim=dense_dim)


def to_sparse_csc(tensor: Tensor, dense_dim: int | None = None) -> SparseTensor:
    """Tensor.to_sparse_csc()."""
    return to_sparse(tensor, layout=sparse_csc, dense_dim=dense_dim)


def to_sparse_bsr(tensor: Tensor, blocksize: Any, dense_dim: int | None = None) -> SparseTensor:
    """Tensor.to_sparse_bsr()."""
    return to_sparse(tensor, layout=sparse_bsr, blocksize=blocksize, dense_dim=dense_dim)


def to_sparse_bsc(tensor: Tensor, blocksize: Any, dense_dim: int | None = None) -> SparseTensor:
    """Tensor.to_sparse_bsc()."""
    return to_sparse(tensor, layout=sparse_bsc, blocksize=blocksize, dense_dim=dense_dim)
