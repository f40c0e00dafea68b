"""Checks of the arguments of constructors, and whether the indices are checked (torch.sparse.check_sparse_tensor_invariants)."""

from __future__ import annotations

import math

from .. import _C
from .._C import Tensor
from .._layouts import layout as layout_type
from .tensor import BLOCKS, COMPRESSED, NAMES, ROWS

enabled = False  # whether constructors check the indices by default


def set_enabled(value: bool) -> None:
    """Sets whether constructors check the indices by default."""
    global enabled
    enabled = value


def size_fits(size: tuple[int, ...]) -> None:
    """Raises RuntimeError if a number of elements, also of those that are not stored, does not fit into 63 bits."""
    if math.prod(size) >= 1 << 63:
        raise RuntimeError("numel: integer multiplication overflow")


def coo_components(indices: Tensor, values: Tensor, size: tuple[int, ...] | None) -> None:
    """Raises RuntimeError unless the sizes of the components fit each other and the tensor's."""
    if indices.dim() != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(indices.shape)}")
    if values.dim() < 1:
        raise RuntimeError("values must have at least one dimension, the number of indices")
    if indices.shape[1] != values.shape[0]:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {indices.shape[1]}, nnz from values: {values.shape[0]}"
        )
    sparse, dense = indices.shape[0], values.dim() - 1
    if size is None:
        return
    if len(size) != sparse + dense:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = {sparse}, dense_dim = {dense}"
        )
    if any(n < 0 for n in size):
        raise RuntimeError(f"Trying to create tensor with negative dimension in size {list(size)}")
    if tuple(values.shape[1:]) != tuple(size[sparse:]):
        raise RuntimeError(f"values has incorrect size, expected {[values.shape[0], *size[sparse:]]}, got {list(values.shape)}")


def coo_indices(indices: Tensor, values: Tensor, size: tuple[int, ...], coalesced: bool) -> None:
    """Raises RuntimeError if an index is out of range or, for coalesced ones, not after its predecessor. Waits for the engine."""
    sizes = size[: indices.shape[0]]
    if indices.shape[1] == 0 or not sizes:
        return
    limits = _C.tensor(list(sizes), dtype=_C.int64, device=indices.device)
    low, high = indices.amin(1).tolist(), indices.amax(1).tolist()
    for d, n in enumerate(sizes):
        if low[d] < 0:
            raise RuntimeError(f"found negative index {low[d]} for dim {d}")
        if high[d] >= n:
            raise RuntimeError(f"size is inconsistent with indices: for dim {d}, size is {n} but found index {high[d]}")
    if coalesced and values.shape[0] > 1:
        distinct, _ = _C.ops.sparse_unique(indices, limits.tolist())
        if distinct.shape[1] != indices.shape[1] or not bool((distinct == indices).all()):
            raise RuntimeError("cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor")


def is_compressed(name: str, kind: layout_type | None) -> None:
    """Raises RuntimeError unless the layout is a compressed one."""
    if kind is None or kind not in COMPRESSED:
        raise RuntimeError(
            f"{name} expected sparse compressed tensor layout but got {'none' if kind is None else NAMES.get(str(kind), str(kind))}"
        )


def compressed_components(kind: layout_type, outer: Tensor, plain: Tensor, values: Tensor, size: tuple[int, ...]) -> None:
    """Raises RuntimeError unless the sizes of the components fit each other and the tensor's."""
    names = ("crow_indices", "col_indices") if kind in ROWS else ("ccol_indices", "row_indices")
    block = 2 if kind in BLOCKS else 0
    batch = plain.dim() - 1
    if outer.dim() < 1 or plain.dim() < 1 or values.dim() < 1 + block:
        raise RuntimeError(
            f"expected {names[0]} and {names[1]} of at least 1 dimension and values of at least {1 + block}, got {outer.dim()}, "
            f"{plain.dim()} and {values.dim()}"
        )
    if outer.dtype is not plain.dtype or outer.dtype not in (_C.int32, _C.int64):
        raise RuntimeError(f"{names[0]} and {names[1]} must have the same dtype, int32 or int64, got {outer.dtype} and {plain.dtype}")
    if outer.dim() != plain.dim() or outer.shape[:-1] != plain.shape[:-1]:
        raise RuntimeError(f"{names[0]} and {names[1]} must have equal batch dimensions, got {list(outer.shape)} and {list(plain.shape)}")
    dense = values.dim() - 1 - batch - block
    if dense < 0 or len(size) != batch + 2 + dense:
        raise RuntimeError(
            f"tensor dimensionality must be sum of batch, base, and dense dimensionalities (={batch} + 2 + {max(dense, 0)}) but got "
            f"{len(size)}"
        )
    if tuple(size[:batch]) != tuple(plain.shape[:-1]) or tuple(values.shape[:batch]) != tuple(plain.shape[:-1]):
        raise RuntimeError(f"all batch dimensions must be equal, got {list(size[:batch])} and {list(plain.shape[:-1])}")
    nnz = values.shape[batch]
    if plain.shape[-1] != nnz:
        raise RuntimeError(
            f"{names[1]}.shape[-1] must be equal to nnz (={nnz}) as defined by values.shape[{batch}], but got {plain.shape[-1]}"
        )
    p, q = values.shape[batch + 1 : batch + 3] if block else (1, 1)
    if p < 1 or q < 1 or size[batch] % p or size[batch + 1] % q:
        raise RuntimeError(
            f"tensor shape[{batch}:{batch + 2}] {list(size[batch : batch + 2])} must be divisible by the block size {[p, q]}"
        )
    count = size[batch] // p if kind in ROWS else size[batch + 1] // q
    if outer.shape[-1] != count + 1:
        raise RuntimeError(
            f"{names[0]}.shape[-1] must be equal to the number of {'rows' if kind in ROWS else 'columns'} + 1 (={count + 1}), but got "
            f"{outer.shape[-1]}"
        )
    if tuple(values.shape[batch + 1 + block :]) != tuple(size[batch + 2 :]):
        raise RuntimeError(f"values has dense dimensions {list(values.shape[batch + 1 + block :])}, expected {list(size[batch + 2 :])}")


def compressed_indices(kind: layout_type, outer: Tensor, plain: Tensor, count: int, nnz: int) -> None:
    """Raises RuntimeError unless the indices are valid: `count` columns (of rows) in blocks. Waits for the engine."""
    names = ("crow_indices", "col_indices", "ncols") if kind in ROWS else ("ccol_indices", "row_indices", "nrows")
    if outer.numel() == 0:
        return
    steps = outer[..., 1:] - outer[..., :-1]
    if not bool((outer[..., 0] == 0).all()):
        raise RuntimeError(f"`{names[0]}[..., 0] == 0` is not satisfied.")
    if not bool((outer[..., -1] == nnz).all()):
        raise RuntimeError(f"`{names[0]}[..., -1] == nnz` is not satisfied.")
    if not bool(((steps >= 0) & (steps <= count)).all()):
        raise RuntimeError(f"`0 <= {names[0]}[..., 1:] - {names[0]}[..., :-1] <= {names[2]}` is not satisfied.")
    if not bool(((plain >= 0) & (plain < count)).all()):
        raise RuntimeError(f"`0 <= {names[1]} < {names[2]}` is not satisfied.")
    if nnz > 1:
        row = _C.ops.sparse_expand(outer, nnz)
        same = row[..., 1:] == row[..., :-1]
        if not bool((~same | (plain[..., 1:] > plain[..., :-1])).all()):
            raise RuntimeError(
                f"`{names[1]}[..., {names[0]}[..., i - 1]:{names[0]}[..., i]] for all i = 1, ..., {names[2]} are sorted and distinct along "
                "the last dimension values` is not satisfied."
            )
