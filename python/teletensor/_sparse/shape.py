"""Operators that move or select elements of sparse tensors, copies, and changes in place of sizes."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._C import Tensor
from .._functions import promote_types
from .._layouts import sparse_coo, strided
from .convert import batch_dim, block_of, coalesce, compressed_to_coo, moved, sparse_sizes
from .elementwise import call
from .in_place import become
from .products import transpose_matrix
from .tensor import BLOCKS, ROWS, SparseTensor, compressed, coo, handlers, hooks, layout_name, like, not_implemented

ops, torch = _C.ops, _C.torch


def _dim(dim: int, count: int) -> int:
    if not -max(count, 1) <= dim < max(count, 1):
        raise IndexError(f"Dimension out of range (expected to be in range of [{-max(count, 1)}, {max(count, 1) - 1}], but got {dim})")
    return dim % max(count, 1)


def _into(name: str, tensor: SparseTensor, result: SparseTensor, into: list | None) -> SparseTensor:
    """The result, or the first argument as the result, for methods such as transpose_()."""
    if into is None:
        return result
    if into[0] is not tensor:
        raise not_implemented(f"{name}.out", tensor)
    return become(tensor, result)


def transpose(tensor: SparseTensor, first: int, second: int) -> SparseTensor:
    """Exchanges two sparse dimensions; rows and columns of compressed layouts."""
    first, second = _dim(first, tensor.dim()), _dim(second, tensor.dim())
    if first == second:
        return tensor
    if not tensor.is_sparse:
        b = batch_dim(tensor)
        if {first, second} != {b, b + 1}:
            raise RuntimeError(
                f"transpose(): can only transpose the sparse dimensions ({b} and {b + 1}) of {layout_name(tensor)}, got {first} and "
                f"{second}"
            )
        return transpose_matrix(tensor)
    sparse = tensor.sparse_dim()
    if first >= sparse or second >= sparse:
        raise RuntimeError(
            f"sparse transpose: transposed dimensions must be sparse Got sparse_dim: {sparse}, d0: {first}, d1: {second}"
        )
    if tensor.dim() == 2 == sparse:
        return transpose_matrix(tensor)
    order = list(range(tensor.dim()))
    order[first], order[second] = second, first
    return permute(tensor, order)


def permute(tensor: SparseTensor, dims: list[int]) -> SparseTensor:
    """Reorders the sparse dimensions among themselves, and the dense ones."""
    if not tensor.is_sparse:
        raise not_implemented("as_strided", tensor)
    count, sparse = tensor.dim(), tensor.sparse_dim()
    if len(dims) != count:
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of "
            f"dimensions i.e. input.dim() = {count} is not equal to len(dims) = {len(dims)}"
        )
    order = [_dim(d, count) for d in dims]
    if len(set(order)) != count:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    if order == list(range(count)):
        return like(tensor, tensor._elements)
    if any((d < sparse) != (i < sparse) for i, d in enumerate(order)):
        raise RuntimeError(
            "permute(sparse_coo): transpositions between sparse and dense dimensions are not allowed.Only transpositions within sparse and "
            "dense dimensions are supported."
        )
    size = [tensor.shape[d] for d in order]
    values = tensor._elements
    if order[sparse:] != list(range(sparse, count)):
        values = values.permute(0, *(d - sparse + 1 for d in order[sparse:]))
    if order[:sparse] == list(range(sparse)):
        return coo(tensor._coo, values, size, tensor._coalesced, tensor._dense_source)
    if sparse == count == 2:
        return transpose_matrix(tensor)
    rows = tensor._coo.index_select(0, _C.tensor(order[:sparse], device=tensor.device))
    return coo(rows, values, size, False, tensor._dense_source)


def unsqueeze(tensor: SparseTensor, dim: int) -> SparseTensor:
    """Adds a sparse dimension, or a dense one after the sparse ones."""
    if not tensor.is_sparse:
        raise RuntimeError("Sparse CSR tensors do not have strides")
    dim, sparse = _dim(dim, tensor.dim() + 1), tensor.sparse_dim()
    size = [*tensor.shape[:dim], 1, *tensor.shape[dim:]]
    if dim > sparse:
        return coo(tensor._coo, tensor._elements.unsqueeze(dim - sparse + 1), size, tensor._coalesced, tensor._dense_source)
    zero = torch.zeros((1, tensor._nnz()), dtype=_C.int64, device=tensor.device)
    indices = torch.cat([tensor._coo[:dim], zero, tensor._coo[dim:]])
    return coo(indices, tensor._elements, size, False, tensor._dense_source)


def _kept(tensor: SparseTensor, at: Tensor) -> tuple[Tensor, Tensor]:
    """The indices and values of the elements where a mask is True."""
    places = at.nonzero().reshape(-1)
    return tensor._coo.index_select(1, places), tensor._elements.index_select(0, places)


def movedim(tensor: SparseTensor, source: Any, destination: Any) -> SparseTensor:
    """permute() that moves some dimensions."""
    count = tensor.dim()
    first, last = ([_dim(d, count) for d in (ds if isinstance(ds, (list, tuple)) else [ds])] for ds in (source, destination))
    if len(first) != len(last) or len(set(first)) != len(first) or len(set(last)) != len(last):
        raise RuntimeError(f"movedim: expected as many distinct sources as destinations, got {source} and {destination}")
    order = [d for d in range(count) if d not in first]
    for place, d in sorted(zip(last, first, strict=True)):
        order.insert(place, d)
    return permute(tensor, order)


def select(tensor: SparseTensor, dim: int, index: int) -> Tensor:
    """A slice without the dimension; strided if no sparse dimension is left."""
    if tensor.dim() == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = _dim(dim, tensor.dim())
    n = tensor.shape[dim]
    if not -n <= index < n:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(tensor.shape)} at dimension {dim}")
    index %= n
    if not tensor.is_sparse:
        return _select_compressed(tensor, dim, index)
    sparse, size = tensor.sparse_dim(), [s for d, s in enumerate(tensor.shape) if d != dim]
    if dim >= sparse:
        return coo(tensor._coo, tensor._elements.select(dim - sparse + 1, index), size, tensor._coalesced, tensor._dense_source)
    indices, values = _kept(tensor, tensor._coo[dim] == index)
    if sparse == 1:
        return values.sum(0) if values.is_floating_point() or values.is_complex() else values.sum(0).to(tensor.dtype)
    rest = torch.cat([indices[:dim], indices[dim + 1 :]])
    return coo(rest, values, size, tensor._coalesced, tensor._dense_source)


def _select_compressed(tensor: SparseTensor, dim: int, index: int) -> Tensor:
    b = batch_dim(tensor)
    if dim < b:
        size = [s for d, s in enumerate(tensor.shape) if d != dim]
        parts = (tensor._compressed.select(dim, index), tensor._plain.select(dim, index), tensor._elements.select(dim, index))
        return compressed(tensor._layout, *parts, size, tensor._dense_source)
    if dim >= b + 2:  # a dense dimension
        size = [s for d, s in enumerate(tensor.shape) if d != dim]
        values = tensor._elements.select(dim - tensor.dim(), index)
        return compressed(tensor._layout, tensor._compressed, tensor._plain, values, size, tensor._dense_source)
    if b:
        raise RuntimeError("select(): selecting sparse dimensions is not supported for batched sparse compressed tensors.")
    flat = compressed_to_coo(tensor)
    return select(coalesce(flat) if not flat._coalesced else flat, dim, index)


def index_select(tensor: SparseTensor, dim: int, index: Tensor) -> SparseTensor:
    """The slices with the given indices."""
    if not tensor.is_sparse:
        raise not_implemented("index_select", tensor)
    if tensor.dim() == 0:
        raise IndexError("index_select() cannot be applied to a 0-dim tensor.")
    if index.dim() != 1 or index.dtype not in (_C.int32, _C.int64):
        raise IndexError(f"index_select() argument index must be 1-D long-tensor, got {index.dim()} dimensions of {index.dtype}")
    dim, sparse = _dim(dim, tensor.dim()), tensor.sparse_dim()
    size = [index.shape[0] if d == dim else s for d, s in enumerate(tensor.shape)]
    if dim >= sparse:
        return coo(tensor._coo, tensor._elements.index_select(dim - sparse + 1, index), size, tensor._coalesced, tensor._dense_source)
    n, wanted = tensor.shape[dim], index.to(_C.int64)
    if index.shape[0] and not bool(((wanted >= -n) & (wanted < n)).all()):
        raise IndexError(f"index_select(): index contains values out of range for tensor of size {list(tensor.shape)} at dimension {dim}")
    wanted = torch.where(wanted < 0, wanted + n, wanted)
    at, order = tensor._coo[dim].sort(stable=True)
    first = torch.searchsorted(at, wanted)  # in time and memory of the elements, whatever the size of the dimension
    counts = torch.searchsorted(at, wanted, right=True) - first
    copies = torch.arange(index.shape[0], device=tensor.device).repeat_interleave(counts)
    starts = first - (counts.cumsum(0) - counts)
    places = order.index_select(0, torch.arange(copies.shape[0], device=tensor.device) + starts.index_select(0, copies))
    rows = tensor._coo.index_select(1, places)
    indices = torch.cat([rows[:dim], copies.unsqueeze(0), rows[dim + 1 :]])
    return coo(indices, tensor._elements.index_select(0, places), size, False, tensor._dense_source)


def narrow_copy(tensor: SparseTensor, dim: int, start: int, length: int) -> SparseTensor:
    """Tensor.narrow_copy(): a range of a dimension."""
    if not tensor.is_sparse:
        raise not_implemented("narrow_copy", tensor)
    dim, sparse = _dim(dim, tensor.dim()), tensor.sparse_dim()
    n = tensor.shape[dim]
    if not 0 <= start <= start + length <= n:
        raise RuntimeError(f"Invalid range to narrow. range(start, start+length) must be a subset of range(0, {n}).")
    size = [length if d == dim else s for d, s in enumerate(tensor.shape)]
    if dim >= sparse:
        return coo(tensor._coo, tensor._elements.narrow(dim - sparse + 1, start, length), size, tensor._coalesced, tensor._dense_source)
    at = tensor._coo[dim]
    indices, values = _kept(tensor, (at >= start) & (at < start + length))
    shift = _C.tensor([start if d == dim else 0 for d in range(sparse)], device=tensor.device).unsqueeze(1)
    return coo(indices - shift, values, size, tensor._coalesced, tensor._dense_source)


def cat(tensors: list[Tensor], dim: int) -> SparseTensor:
    """Concatenates sparse_coo tensors."""
    for place, t in enumerate(tensors):
        if not isinstance(t, SparseTensor):
            raise RuntimeError(f"Concatenating sparse tensors, but a dense tensor was found at position {place}.")
        if not t.is_sparse:
            raise RuntimeError("Sparse CSR tensors do not have is_contiguous")
    first = tensors[0]
    dim, sparse = _dim(dim, first.dim()), first.sparse_dim()
    for place, t in enumerate(tensors):
        if t.sparse_dim() != sparse or t.dense_dim() != first.dense_dim():
            raise RuntimeError(
                f"All tensors must have the same number of sparse and dense dimensions, but the tensor at position {place} has "
                f"{t.sparse_dim()} and {t.dense_dim()} and the first {sparse} and {first.dense_dim()}"
            )
        if any(d != dim and t.shape[d] != n for d, n in enumerate(first.shape)):
            raise RuntimeError(
                f"Sizes of tensors must match except in dimension {dim}. Expected size {list(first.shape)} but got size {list(t.shape)}"
            )
    kind, ends = first.dtype, [0]
    for t in tensors:
        kind = promote_types(kind, t.dtype)
        ends.append(ends[-1] + t.shape[dim])
    size = [ends[-1] if d == dim else n for d, n in enumerate(first.shape)]
    source = any(t._dense_source for t in tensors)
    if dim < sparse:
        shifts = [[[start if d == dim else 0] for d in range(sparse)] for start in ends[:-1]]
        indices = torch.cat([t._coo + _C.tensor(s, device=t.device) if any(map(any, s)) else t._coo for t, s in zip(tensors, shifts)], 1)
        return coo(indices, torch.cat([t._elements.to(kind) for t in tensors]), size, False, source)
    at = dim - sparse + 1
    values = []
    for t, start in zip(tensors, ends):
        shape = list(t._elements.shape)
        before, after = [*shape[:at], start, *shape[at + 1 :]], [*shape[:at], ends[-1] - start - t.shape[dim], *shape[at + 1 :]]
        zeros = [torch.zeros(s, dtype=kind, device=t.device) for s in (before, after)]
        values.append(torch.cat([zeros[0], t._elements.to(kind), zeros[1]], at))
    return coo(torch.cat([t._coo for t in tensors], 1), torch.cat(values), size, False, source)


def _stack(tensors: list[Tensor], dim: int) -> SparseTensor:
    for place, t in enumerate(tensors):
        if not isinstance(t, SparseTensor) or not t.is_sparse:
            raise RuntimeError(f"Concatenating sparse tensors, but a {layout_name(t)} tensor was found at position {place}.")
    dim = _dim(dim, tensors[0].dim() + 1)
    return cat([unsqueeze(t, dim) for t in tensors], dim)


def _stacked(dim: int):
    """vstack() and hstack() of tensors of at least two dimensions; of vectors, their concatenation or a matrix."""

    def stacked(tensors: list[Tensor]) -> SparseTensor:
        if tensors[0].dim() < 2:
            return cat(tensors, 0) if dim else _stack(tensors, 0)
        return cat(tensors, dim)

    return stacked


def unbind(tensor: SparseTensor, dim: int) -> tuple:
    """The slices along a dimension."""
    dim = _dim(dim, tensor.dim())
    return tuple(select(tensor, dim, i) for i in range(tensor.shape[dim]))


def clone(tensor: SparseTensor) -> SparseTensor:
    """A copy of the components."""
    values = tensor._elements.clone()
    if tensor.is_sparse:
        return coo(tensor._coo.clone(), values, tensor.shape, tensor._coalesced, tensor._dense_source)
    return compressed(
        tensor._layout, tensor._compressed.clone(), tensor._plain.clone(), values, tensor.shape, tensor._dense_source
    )


def detach(tensor: SparseTensor) -> SparseTensor:
    """The same components, without history."""
    made = like(tensor, tensor._elements.detach())
    made._dense_source, made._keeps_pattern = False, tensor._keeps_pattern
    return made


def _assign(arguments: list, into: list | None) -> Tensor:
    """copy_()."""
    source = arguments[1]
    target = into[0] if into else arguments[0]
    if not (isinstance(source, SparseTensor) and isinstance(target, SparseTensor)):
        raise RuntimeError(
            f"copy_() between dense and sparse Tensors is not implemented! Found self type = {target.type()} and src type = {source.type()}"
        )
    if source.shape != target.shape:
        raise RuntimeError(f"copy_(): expected a source of size {list(target.shape)}, got {list(source.shape)}")
    if source._layout != target._layout:
        raise RuntimeError(f"torch.copy_: copy of sparse compressed tensors having different layouts is not supported. self layout is "
                           f"{layout_name(target)} and src layout is {layout_name(source)}")  # fmt: skip
    if not target.is_sparse:
        if source._nnz() != target._nnz():
            raise RuntimeError("torch.copy_: only sparse compressed tensors with the same number of specified elements are supported.")
        target._compressed.copy_(source._compressed)
        target._plain.copy_(source._plain)
        target._elements.copy_(source._elements)
        return target
    return become(target, clone(moved(source, target.dtype, target.device)))


def _fill(arguments: list, into: list | None) -> SparseTensor:
    """fill() and fill_() of the values of compressed layouts; of sparse_coo, which PyTorch does not fill, zero_()."""
    tensor, value = arguments
    if isinstance(value, Tensor) or (tensor.is_sparse and (value != 0 or type(value) is float or into is None)):
        raise not_implemented("fill_", tensor)
    if tensor.is_sparse:
        return zero_(tensor)
    if into is None:
        return _filled(tensor, call("fill", [tensor._elements, value]))
    into[0]._elements.fill_(value)
    return into[0]


def _filled(tensor: SparseTensor, values: Tensor) -> SparseTensor:
    """The values with copies of the indices of a compressed tensor, on the values' device."""
    parts = (tensor._compressed.to(values.device, copy=True), tensor._plain.to(values.device, copy=True))
    return compressed(tensor._layout, *parts, values, tensor.shape)


def zero_(tensor: SparseTensor) -> SparseTensor:
    """Removes all elements. Of a gradient of a leaf, and of a leaf, makes the values zeros: the indices are the leaf's."""
    if tensor._keeps_pattern or tensor.requires_grad:
        tensor._elements.zero_()
        return tensor
    empty = zeros(tensor.shape, tensor._layout, tensor.dtype, tensor.device, tensor)
    return become(tensor, empty)


def zeros(size: Any, kind: Any, dtype: Any, device: Any, template: SparseTensor | None = None) -> SparseTensor:
    """A tensor without elements. The number of dense dimensions, the blocks and the dtype of indices are those of the template."""
    size = tuple(size)
    dense = 0 if template is None else template.dense_dim()
    if kind == strided:
        raise RuntimeError("[zeros] expected a sparse layout")
    if kind == sparse_coo:
        sparse = len(size) - dense
        indices = torch.zeros((sparse, 0), dtype=_C.int64, device=device)
        return coo(indices, torch.zeros((0, *size[sparse:]), dtype=dtype, device=device), size, True)
    block = block_of(template) if template is not None and template._layout in BLOCKS else ()
    if kind in BLOCKS and not block:
        raise RuntimeError(f"empty_sparse_compressed expected sparse compressed (non-block) tensor layout but got {kind}")
    if block and kind not in BLOCKS:
        raise RuntimeError(f"sparse_compressed_tensor_with_dims: blocksize cannot be specified for non-block layout {kind}")
    b = len(size) - 2 - dense
    if b < 0:
        raise RuntimeError(f"torch.empty: Only batched sparse compressed (non-block) tensors are supported, but got size {list(size)}")
    p, q = block or (1, 1)
    count = size[b] // p if kind in ROWS else size[b + 1] // q
    index = template._plain.dtype if template is not None and not template.is_sparse else _C.int64
    outer = torch.zeros((*size[:b], count + 1), dtype=index, device=device)
    plain = torch.zeros((*size[:b], 0), dtype=index, device=device)
    return compressed(kind, outer, plain, torch.zeros((*size[:b], 0, *block, *size[b + 2 :]), dtype=dtype, device=device), size)


def _like(name: str):
    """zeros_like, without elements; other functions, of compressed layouts, with the indices, as in PyTorch."""

    def handle(arguments: list, into: list | None) -> SparseTensor:
        tensor, *rest = arguments
        dtype, device = rest[-2] or tensor.dtype, tensor.device if rest[-1] is None else _C.placed(rest[-1])
        if into is not None:
            raise not_implemented(f"{name}.out", tensor)
        if name == "zeros_like" or (name == "empty_like" and tensor.is_sparse):
            return zeros(tensor.shape, tensor._layout, dtype, device, tensor)
        if tensor.is_sparse:
            raise not_implemented("fill_", tensor)
        return _filled(tensor, call(name, [tensor._elements, *rest[:-2], dtype, device]))

    return handle


def sparse_resize_(tensor: SparseTensor, size: Any, sparse_dim: int, dense_dim: int) -> SparseTensor:
    """Tensor.sparse_resize_()."""
    _check_resize("sparse_resize_", tensor, size, sparse_dim, dense_dim)
    size = tuple(size)
    if tensor._nnz():
        advice = (
            " on a non-empty sparse tensor is not supported. You could try the following options: 1. If you need an empty sparse tensor of "
            "this size, call `x = torch.sparse_coo_tensor(size)`. 2. If you need to resize this tensor, you have the following options: 1. "
            "For both sparse and dense dimensions, keep the number of them constant and the size of them non-shrinking, and then try the "
            "same call again. 2. Or, create a new sparse tensor with the correct indices and values from this sparse tensor."
        )
        for what, old, new in (("sparse", tensor.sparse_dim(), sparse_dim), ("dense", tensor.dense_dim(), dense_dim)):
            if old != new:
                raise RuntimeError(f"changing the number of {what} dimensions (from {old} to {new}){advice}")
        for what, old, new in (
            ("sparse", sparse_sizes(tensor), list(size[:sparse_dim])), ("dense", list(tensor.shape[sparse_dim:]), list(size[sparse_dim:])),
        ):  # fmt: skip
            if any(n < o for o, n in zip(old, new)):
                raise RuntimeError(f"shrinking the size of {what} dimensions (from {old} to {new}){advice}")
        values = tensor._elements
        if tuple(size[sparse_dim:]) != tuple(tensor.shape[sparse_dim:]):
            grown = torch.zeros((tensor._nnz(), *size[sparse_dim:]), dtype=tensor.dtype, device=tensor.device)
            grown[tuple(slice(0, n) for n in values.shape)] = values
            values = grown
        return become(tensor, coo(tensor._coo, values, size, tensor._coalesced))
    return _cleared(tensor, size, sparse_dim)


def _check_resize(name: str, tensor: SparseTensor, size: Any, sparse_dim: int, dense_dim: int) -> None:
    if not isinstance(tensor, SparseTensor) or not tensor.is_sparse:
        raise RuntimeError(f"{name}: expected a tensor of layout sparse_coo, got {layout_name(tensor)}")
    if sparse_dim + dense_dim != len(tuple(size)):
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(tuple(size))}, sparse_dim = {sparse_dim}, "
            f"dense_dim = {dense_dim}"
        )
    if tensor.requires_grad:
        raise RuntimeError(f"[{name}] cannot resize variables that require grad")


def _cleared(tensor: SparseTensor, size: tuple[int, ...], sparse_dim: int) -> SparseTensor:
    indices = torch.zeros((sparse_dim, 0), dtype=_C.int64, device=tensor.device)
    values = torch.zeros((0, *size[sparse_dim:]), dtype=tensor.dtype, device=tensor.device)
    return become(tensor, coo(indices, values, size, True))


def sparse_resize_and_clear_(tensor: SparseTensor, size: Any, sparse_dim: int, dense_dim: int) -> SparseTensor:
    """Tensor.sparse_resize_and_clear_()."""
    _check_resize("sparse_resize_and_clear_", tensor, size, sparse_dim, dense_dim)
    return _cleared(tensor, tuple(size), sparse_dim)


def resize_as_sparse_(input: SparseTensor, the_template: SparseTensor) -> SparseTensor:
    """torch.resize_as_sparse_(): the size and numbers of dimensions of another tensor."""
    if not isinstance(input, SparseTensor) or not isinstance(the_template, SparseTensor):
        raise RuntimeError("resize_as_sparse_: layouts of input and template must be sparse")
    if input._layout != the_template._layout:
        raise RuntimeError(f"resize_as_sparse_: expected tensors of one layout, got {layout_name(input)} and {layout_name(the_template)}")
    if input.is_sparse:
        same = input.shape == the_template.shape and input.sparse_dim() == the_template.sparse_dim()
        return input if same else sparse_resize_(input, the_template.shape, the_template.sparse_dim(), the_template.dense_dim())
    if input.shape != the_template.shape or input._nnz() != the_template._nnz():
        raise NotImplementedError("[resize_as_sparse_] compressed tensors of another size or number of elements are not supported")
    return input


def view_as_real(tensor: SparseTensor) -> SparseTensor:
    """torch.view_as_real: real and imaginary parts as a dense dimension."""
    values = torch.view_as_real(tensor._elements)
    if not tensor.is_sparse:
        raise not_implemented("view_as_real", tensor)
    return coo(tensor._coo, values, (*tensor.shape, 2), tensor._coalesced, tensor._dense_source)


def _of(name: str, function: Any):
    def handle(arguments: list, into: list | None) -> SparseTensor:
        return _into(name, arguments[0], function(*arguments), into)

    return handle


def _embedding(weight: Tensor, index: Tensor, *_rest: Any) -> Any:
    if not isinstance(weight, SparseTensor) or index.dim() != 1:
        raise not_implemented("embedding", weight if isinstance(weight, SparseTensor) else index)
    return index_select(weight, 0, index)


def _without_out(name: str, function: Any):
    """A handler that refuses `out`."""

    def handle(arguments: list, into: list | None) -> Any:
        if into is not None:
            raise not_implemented(f"{name}.out", next(t for t in (*into, *arguments) if isinstance(t, SparseTensor)))
        return function(*arguments)

    return handle


def _raises(message: str):
    def handle(_arguments: list, _into: list | None) -> Any:
        raise RuntimeError(message)

    return handle


def t(tensor: SparseTensor) -> SparseTensor:
    """The transpose of a matrix; a vector unchanged."""
    if not tensor.is_sparse and tensor.dim() > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {tensor.dim()}D")
    if tensor.is_sparse and (tensor.sparse_dim() > 2 or tensor.dense_dim()):
        raise RuntimeError(
            f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got {tensor.sparse_dim()} sparse and {tensor.dense_dim()} "
            "dense dimensions"
        )
    return transpose(tensor, 0, 1) if tensor.dim() == 2 else tensor


def _resize_as_(tensor: SparseTensor, the_template: SparseTensor, *, memory_format: Any = None) -> SparseTensor:
    """Tensor.resize_as_(): resize_as_sparse_()."""
    if memory_format is not None:
        raise not_implemented("resize_", tensor)
    return resize_as_sparse_(tensor, the_template)


def _normal(arguments: list, into: list | None) -> SparseTensor:
    """normal_() of the stored values of a compressed layout."""
    tensor = arguments[0]
    if tensor.is_sparse or into is None or into[0] is not tensor:
        raise not_implemented("normal_", tensor)
    tensor._elements.normal_(*arguments[1:])
    return tensor


hooks["narrow_copy"] = narrow_copy
SparseTensor.resize_as_ = _resize_as_
SparseTensor.zero_ = zero_
for _name, _function in {
    "cat": cat, "stack": _stack, "vstack": _stacked(0), "hstack": _stacked(1),
    "unbind": unbind, "clone": clone, "detach": detach, "embedding": _embedding,
    "alias": lambda tensor: like(tensor, ops.alias(tensor._elements)),
    "to_dtype": lambda tensor, dtype: moved(tensor, dtype, tensor.device),
    "to_device": lambda tensor, device: moved(tensor, None, _C.placed(device)),
}.items():  # fmt: skip
    handlers[_name] = _without_out(_name, _function)
handlers.update(
    t=_of("t", t), transpose=_of("transpose", transpose), permute=_of("permute", permute),
    movedim=_of("movedim", movedim), unsqueeze=_of("unsqueeze", unsqueeze),
    select=_of("select", select), index_select=_of("index_select", index_select), assign=_assign, fill=_fill, normal_like=_normal,
    **{name: _like(name) for name in ("zeros_like", "empty_like", "ones_like", "full_like", "randn_like")},
    reshape=_raises("reshape is not implemented for sparse tensors"), expand=_raises("expand is unsupported for Sparse tensors"),
    broadcast_to=_raises("expand is unsupported for Sparse tensors"), view_as_real=_of("view_as_real", view_as_real),
    real=_of("real", lambda tensor: tensor.real), imag=_of("imag", lambda tensor: tensor.imag),
)  # fmt: skip
