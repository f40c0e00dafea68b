"""Constructors of sparse tensors: torch.sparse_coo_tensor, sparse_csr_tensor and the others; spdiags."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._C import Tensor
from .._layouts import layout as layout_type
from .._layouts import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from .._options import check_flags, check_optional_flags
from . import check
from .convert import to_sparse
from .shape import zeros
from .tensor import BLOCKS, NAMES, ROWS, SparseTensor, compressed, coo

torch = _C.torch


def _tensor(data: Any, dtype: Any, device: Any) -> Tensor:
    if isinstance(data, SparseTensor):
        raise RuntimeError("expected strided tensors as components, got a sparse one")
    if isinstance(data, Tensor):
        return data.to(data.device if device is None else _C.placed(device), dtype or data.dtype)
    return _C.tensor(data, dtype=dtype, device=device)


def _linked(values: Tensor, requires_grad: bool) -> Tensor:
    """The values of a new tensor: a leaf, or linked to the given values' history."""
    if requires_grad:
        return values.detach().requires_grad_()
    return _C.ops.alias(values) if values.requires_grad and _C.is_grad_enabled() else values.detach()


def _checks(check_invariants: bool | None) -> bool:
    return check.enabled if check_invariants is None else check_invariants


def sparse_coo_tensor(
    indices: Any = None, values: Any = None, size: Any = None, *, dtype: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False, check_invariants: bool | None = None, is_coalesced: bool | None = None,
) -> SparseTensor:  # fmt: skip
    """Creates a tensor of layout sparse_coo.

    Args:
        indices: [sparse_dim, nnz], converted to int64.
        values: [nnz, *dense].
        size: by default, the smallest that contains the indices; the engine is waited for then.
        check_invariants: whether the indices are checked at once, which waits for the engine; by default the setting of
            torch.sparse.check_sparse_tensor_invariants. Operators check them too.
        is_coalesced: whether the indices are sorted and distinct.
    """
    check_flags("sparse_coo_tensor", pin_memory=pin_memory, requires_grad=requires_grad)
    check_optional_flags("sparse_coo_tensor", check_invariants=check_invariants, is_coalesced=is_coalesced)
    if values is None:
        size = indices if size is None else size
        if size is None or (indices is not None and indices is not size):
            raise TypeError("sparse_coo_tensor() expected indices and values, or a size")
        where = _C.default_device() if device is None else _C.placed(device)
        check.size_fits(tuple(size))
        made = zeros(size, sparse_coo, dtype or _C.default_dtype(), where)
        made._elements.requires_grad = requires_grad
        return made
    values = _tensor(values, dtype, device)
    indices = _tensor(indices, None, values.device)
    if indices.is_complex():
        raise TypeError("sparse_coo_tensor: expected indices of an integral dtype")
    indices = indices.detach().to(_C.int64)
    check.coo_components(indices, values, None if size is None else tuple(size))
    if size is None:
        if indices.shape[1] == 0:
            size = (*(0,) * indices.shape[0], *values.shape[1:])
        else:
            size = (*(n + 1 for n in indices.amax(1).tolist()), *values.shape[1:]) if indices.shape[0] else values.shape[1:]
    check.size_fits(tuple(size))
    if _checks(check_invariants):
        check.coo_indices(indices, values, tuple(size), bool(is_coalesced))
    coalesced = is_coalesced if is_coalesced is not None else indices.shape[1] == 0
    return coo(indices, _linked(values, requires_grad), tuple(size), bool(coalesced))


def sparse_compressed_tensor(
    compressed_indices: Any, plain_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, layout: layout_type | None = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
) -> SparseTensor:  # fmt: skip
    """Creates a tensor of a compressed layout.

    Args:
        compressed_indices: where the elements of each row (column, for sparse_csc and sparse_bsc) begin, [*batch, n + 1].
        plain_indices: the column (row) of each element or block, [*batch, nnz].
        values: [*batch, nnz, *dense], with two dimensions of a block after nnz for sparse_bsr and sparse_bsc.
        size: by default, the smallest that contains the indices; the engine is waited for then.
        layout: sparse_csr, sparse_csc, sparse_bsr or sparse_bsc.
        check_invariants: as for sparse_coo_tensor().
    """
    return _compressed("sparse_compressed_tensor", layout, compressed_indices, plain_indices, values, size, dtype, device, pin_memory,
                       requires_grad, check_invariants)  # fmt: skip


def _compressed(
    name: str, layout: layout_type | None, compressed_indices: Any, plain_indices: Any, values: Any, size: Any, dtype: Any, device: Any,
    pin_memory: bool, requires_grad: bool, check_invariants: bool | None,
) -> SparseTensor:  # fmt: skip
    check.is_compressed(name, layout)
    check_flags(name, pin_memory=pin_memory, requires_grad=requires_grad)
    check_optional_flags(name, check_invariants=check_invariants)
    assert layout is not None
    values = _tensor(values, dtype, device)
    outer, plain = (_tensor(t, None, values.device).detach() for t in (compressed_indices, plain_indices))
    for t in (outer, plain):
        if t.is_floating_point() or t.is_complex():
            raise RuntimeError(f"[{name}] expected indices of dtype int32 or int64, got {t.dtype}")
    kind = _C.int32 if outer.dtype is plain.dtype is _C.int32 else _C.int64
    outer, plain = outer.to(kind), plain.to(kind)
    if size is None:
        size = _inferred(layout, outer, plain, values)
    size = tuple(size)
    check.size_fits(size)
    check.compressed_components(layout, outer, plain, values, size)
    if _checks(check_invariants):
        b, (p, q) = plain.dim() - 1, values.shape[plain.dim() : plain.dim() + 2] if layout in BLOCKS else (1, 1)
        count = size[b + 1] // q if layout in ROWS else size[b] // p
        check.compressed_indices(layout, outer, plain, count, plain.shape[-1])
    return compressed(layout, outer, plain, _linked(values, requires_grad), size)


def _inferred(layout: layout_type, outer: Tensor, plain: Tensor, values: Tensor) -> tuple[int, ...]:
    """The smallest size that contains the indices. Waits for the engine."""
    b, block = plain.dim() - 1, 2 if layout in BLOCKS else 0
    p, q = values.shape[b + 1 : b + 3] if block else (1, 1)
    first = max(outer.shape[-1] - 1, 0)
    second = int(plain.max().item()) + 1 if plain.numel() else 0
    pair = (first * p, second * q) if layout in ROWS else (second * p, first * q)
    return (*plain.shape[:-1], *pair, *values.shape[b + 1 + block :])


def sparse_csr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
) -> SparseTensor:  # fmt: skip
    """sparse_compressed_tensor() with the layout sparse_csr."""
    return _compressed("sparse_csr_tensor", sparse_csr, crow_indices, col_indices, values, size, dtype, device, pin_memory, requires_grad,
                       check_invariants)  # fmt: skip


def sparse_csc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
) -> SparseTensor:  # fmt: skip
    """sparse_compressed_tensor() with the layout sparse_csc."""
    return _compressed("sparse_csc_tensor", sparse_csc, ccol_indices, row_indices, values, size, dtype, device, pin_memory, requires_grad,
                       check_invariants)  # fmt: skip


def sparse_bsr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
) -> SparseTensor:  # fmt: skip
    """sparse_compressed_tensor() with the layout sparse_bsr."""
    return _compressed("sparse_bsr_tensor", sparse_bsr, crow_indices, col_indices, values, size, dtype, device, pin_memory, requires_grad,
                       check_invariants)  # fmt: skip


def sparse_bsc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
) -> SparseTensor:  # fmt: skip
    """sparse_compressed_tensor() with the layout sparse_bsc."""
    return _compressed("sparse_bsc_tensor", sparse_bsc, ccol_indices, row_indices, values, size, dtype, device, pin_memory, requires_grad,
                       check_invariants)  # fmt: skip


def _sparse_coo_tensor_unsafe(
    indices: Tensor, values: Tensor, size: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
    check_invariants: bool | None = None, is_coalesced: bool | None = None,
) -> SparseTensor:  # fmt: skip
    """sparse_coo_tensor(); the sizes of components are checked here too."""
    return sparse_coo_tensor(
        indices, values, size, dtype=dtype, device=device, requires_grad=requires_grad, check_invariants=check_invariants,
        is_coalesced=is_coalesced,
    )  # fmt: skip


def _validate_sparse_coo_tensor_args(
    indices: Tensor, values: Tensor, size: Any, is_coalesced: bool = False, check_pinning: bool = True
) -> None:
    """Raises RuntimeError unless the components are valid. Waits for the engine."""
    check_flags("_validate_sparse_coo_tensor_args", check_pinning=check_pinning)
    check.coo_components(indices, values, tuple(size))
    check.coo_indices(indices, values, tuple(size), bool(is_coalesced))


def _validate_sparse_compressed_tensor_args(
    compressed_indices: Tensor, plain_indices: Tensor, values: Tensor, size: Any, layout: layout_type, check_pinning: bool = True
) -> None:
    """Raises RuntimeError unless the components are valid. Waits for the engine."""
    check_flags("_validate_sparse_compressed_tensor_args", check_pinning=check_pinning)
    name = "_validate_sparse_compressed_tensor_args"
    _compressed(name, layout, compressed_indices, plain_indices, values, size, None, None, False, False, True)


def _size(args: tuple, kwargs: dict) -> Any:
    if "size" in kwargs:
        return kwargs.pop("size")
    first = args[0] if args else ()
    return tuple(args) if isinstance(first, int) or not args else first


def with_layout(name: str, args: tuple, kwargs: dict) -> SparseTensor:
    """torch.zeros(), torch.empty(), and zeros_like() and others with a sparse layout. Other functions raise, as in PyTorch."""
    kwargs = dict(kwargs)
    layout = kwargs.pop("layout")
    if str(layout) not in NAMES:
        raise TypeError(f"{name}(): expected layout to be a sparse layout, got {layout!r}")
    if name in ("ones", "full"):
        raise RuntimeError(f"full(...) is not implemented for sparse layout, got {layout}")
    if name.endswith("_like"):
        return _like_with_layout(name, args, kwargs, layout)
    if name not in ("zeros", "empty"):
        raise NotImplementedError(f"[{name}] the layout {layout} is not supported: convert the result with to_sparse()")
    requires_grad, pinned = kwargs.pop("requires_grad", False), kwargs.pop("pin_memory", False)
    check_flags(name, requires_grad=requires_grad, pin_memory=pinned)
    dtype, device = kwargs.pop("dtype", None), kwargs.pop("device", None)
    size = _size(args, kwargs)
    if set(kwargs) - {"memory_format", "names", "out"} or any(v is not None for v in kwargs.values()):
        raise TypeError(f"{name}() got unexpected arguments {sorted(kwargs)} for the layout {layout}")
    where = _C.default_device() if device is None else _C.placed(device)
    made = zeros(size, layout, dtype or _C.default_dtype(), where)
    made._elements.requires_grad = requires_grad
    return made


def _like_with_layout(name: str, args: tuple, kwargs: dict, layout: Any) -> SparseTensor:
    source, args = (kwargs.pop("input"), args) if "input" in kwargs else (args[0], args[1:])
    if source.layout == layout:
        return getattr(torch, name)(source, *args, **kwargs)
    if isinstance(source, SparseTensor) and not source.is_sparse and name != "zeros_like":
        names = [NAMES[str(kind)] for kind in (source.layout, layout)]
        raise RuntimeError("empty_like with different sparse layout is not supported (self is {} but you requested {})".format(*names))
    if name != "zeros_like" and (name, layout) != ("empty_like", sparse_coo):
        raise NotImplementedError(f"[{name}] the layout {layout} is not supported: convert the result with to_sparse()")
    return _without_elements(name, source, layout, *args, **kwargs)


def _without_elements(
    name: str, source: Tensor, layout: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
    memory_format: Any = None,
) -> SparseTensor:  # fmt: skip
    check_flags(name, requires_grad=requires_grad, pin_memory=pin_memory)
    if memory_format not in (None, "torch.preserve_format"):
        raise RuntimeError("memory format option is only supported by strided tensors")
    template = source if isinstance(source, SparseTensor) else None
    made = zeros(source.shape, layout, dtype or source.dtype, source.device if device is None else _C.placed(device), template)
    made._elements.requires_grad = requires_grad
    return made


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Any, layout: layout_type | None = None) -> SparseTensor:
    """torch.sparse.spdiags: a matrix whose diagonals are the rows of a tensor. Waits for the offsets.

    Args:
        diagonals: [k, n]; element (i, j) is in column j, on the diagonal offsets[i].
        offsets: k integers without repetitions; 0 is the main diagonal, positive ones are above it.
        shape: the number of rows and columns.
        layout: sparse_coo (the default), sparse_csr or sparse_csc.
    """
    rows, columns = (int(n) for n in shape) if len(tuple(shape)) == 2 else (-1, -1)
    if rows < 0:
        raise RuntimeError(f"Output shape must be 2d, got {tuple(shape)}")
    if layout is not None and layout not in (sparse_coo, sparse_csr, sparse_csc):
        raise RuntimeError(f"Only output layouts (SparseCoo, SparseCsc and SparseCsr) are supported, got {layout}")
    diagonals = diagonals.unsqueeze(0) if diagonals.dim() == 1 else diagonals
    offsets = offsets.unsqueeze(0) if offsets.dim() == 0 else offsets
    if diagonals.dim() != 2:
        raise RuntimeError("Diagonals must be vector or matrix")
    if offsets.dim() != 1:
        raise RuntimeError("Offsets must be scalar or vector")
    if diagonals.shape[0] != offsets.shape[0]:
        raise RuntimeError(f"Number of diagonals ({diagonals.shape[0]}) does not match the number of offsets ({offsets.shape[0]})")
    if offsets.dtype is not _C.int64:
        raise RuntimeError("Offset Tensor must have dtype Long but got " + str(offsets.dtype))
    if len(set(offsets.tolist())) != offsets.shape[0]:
        raise RuntimeError("Offset tensor contains duplicate values")
    column = torch.arange(min(diagonals.shape[1], columns), device=diagonals.device).unsqueeze(0)
    row = column - offsets.to(diagonals.device).unsqueeze(1)
    valid = (row >= 0) & (row < rows)
    indices = torch.stack([row[valid], column.expand_as(row)[valid]])
    made = coo(indices, diagonals[:, : column.shape[1]][valid], (rows, columns), False)
    return made if layout in (None, sparse_coo) else to_sparse(made, layout=layout)
