"""Top-level functions that combine tensors: products over all pairs, blocks, sets and statistics."""

from __future__ import annotations

import itertools
import math
import operator

from .. import _C
from .._C import Tensor
from .._functions import meshgrid
from .._layouts import require_not_nested
from .._options import check_flags, check_floating, check_kind, check_layout

__all__ = [
    "argwhere", "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "cartesian_prod", "combinations",
    "nonzero", "pdist", "range", "scalar_tensor",
    "tril_indices", "triu_indices", "unique", "unique_consecutive", "where",
]  # fmt: skip

_torch, _builtin_range = _C.torch, range


def unique(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None):
    """Returns the sorted distinct values, or slices along dim; on request also inverse indices and counts. Waits for the engine.

    ``sorted`` has no effect: the result is always sorted.
    """
    if dim is None:
        output, inverse, counts = _C.ops.unique_values(input)
        return _requested_results(output, inverse, counts, return_inverse, return_counts)
    return _unique_slices(input, dim, False, return_inverse, return_counts)


def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None):
    """The first value of each run of equal values, or the first slice of each run of equal slices along dim. Waits for the engine."""
    if dim is None:
        output, inverse, counts = _C.ops.unique_rows(input.reshape(-1, 1), True)
        output, inverse = output.reshape(-1), inverse.reshape(input.shape)
        return _requested_results(output, inverse, counts, return_inverse, return_counts)
    return _unique_slices(input, dim, True, return_inverse, return_counts)


def _unique_slices(input: Tensor, dim: int, consecutive: bool, return_inverse: bool, return_counts: bool):
    check_kind("unique_consecutive" if consecutive else "unique", "dim", dim, int)
    slices = input.movedim(dim, 0)
    if input.numel() == 0:
        if slices.shape[0]:
            raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
        none = _torch.empty(0, dtype=_C.int64, device=input.device)
        return _requested_results(input.clone(), none, none, return_inverse, return_counts)
    output, inverse, counts = _C.ops.unique_rows(slices.reshape(slices.shape[0], -1), consecutive)
    output = output.reshape(-1, *slices.shape[1:]).movedim(0, dim)
    return _requested_results(output, inverse, counts, return_inverse, return_counts)


def _requested_results(output, inverse, counts, return_inverse: bool, return_counts: bool):
    if not return_inverse and not return_counts:
        return output
    return (output, *((inverse,) if return_inverse else ()), *((counts,) if return_counts else ()))


def nonzero(input: Tensor, *, as_tuple: bool = False, out: Tensor | None = None):
    """The indices of the nonzero elements: one row per element or, if as_tuple, one vector per dimension. Waits for the engine."""
    if not as_tuple:
        return _torch.nonzero(input) if out is None else _torch.nonzero(input, out=out)
    if out is not None:
        raise TypeError("nonzero(): argument 'out' must be None if as_tuple is True")
    return tuple(_torch.nonzero(input if input.dim() else input.reshape(1)).unbind(1))


def where(condition: Tensor, input=None, other=None, *, out: Tensor | None = None):
    """input's elements where condition is True, other's elsewhere; with only a condition, nonzero(as_tuple=True)."""
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    return _torch.where(condition, input, other) if out is None else _torch.where(condition, input, other, out=out)


def argwhere(input: Tensor) -> Tensor:
    """The indices of the nonzero elements, one row per element. Waits for the engine."""
    return input.nonzero()


def cartesian_prod(*tensors) -> Tensor:
    """All combinations of the tensors' values, one per row."""
    for t in tensors:
        if t.dim() != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(t.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return _torch.stack([g.reshape(-1) for g in meshgrid(*tensors)], 1)


_MAX_COMBINED = 1 << 26  # indices that combinations() computes in the client


def _check_combinations(n: int, r: int, with_replacement: bool) -> None:
    most = r + 1 if n > 1 and with_replacement else n if r < n else 1  # rows are at least so many
    if r * most <= _MAX_COMBINED:
        most = math.comb(n + r - 1 if with_replacement else n, r)
    if r * most > _MAX_COMBINED:
        raise RuntimeError(f"combinations: expected at most {_MAX_COMBINED} indices in the result, got more for {n} elements and r={r}")


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of r elements of a vector, one per row."""
    if input.dim() != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return input.new_empty(0)
    if r == 2:
        n = input.shape[0]
        return input[triu_indices(n, n, 0 if with_replacement else 1, device=input.device).transpose(0, 1)]
    n = input.shape[0]
    if n == 0 or (r > n and not with_replacement):
        return input[:0].unsqueeze(-1).repeat(1, r)
    _check_combinations(n, r, with_replacement)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(choose(_builtin_range(n), r))
    return input[_C.tensor(rows, dtype=_C.int64, device=input.device).reshape(len(rows), r)]


def block_diag(*tensors) -> Tensor:
    """A block-diagonal matrix: the matrices along the diagonal, zeros elsewhere."""
    require_not_nested("block_diag", *tensors)
    blocks = [t.reshape(1, -1) if t.dim() < 2 else t for t in tensors]
    if any(b.dim() > 2 for b in blocks):
        raise RuntimeError("torch.block_diag: Input tensors must have 2 or fewer dimensions.")
    width, rows, at = sum(b.shape[1] for b in blocks), [], 0
    for b in blocks:
        rows.append(_C.ops.pad(b, [at, width - at - b.shape[1]]))
        at += b.shape[1]
    return _torch.cat(rows, 0) if rows else _torch.empty(1, 0)


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The p-norms of the differences of all unordered pairs of rows."""
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    check_floating("pdist", input=input)
    first, second = triu_indices(input.shape[0], input.shape[0], 1, device=input.device).unbind(0)
    differences = input[first] - input[second]
    return _C.ops.chebyshev_norm(differences, [-1]) if p == math.inf else differences.norm(p, -1)


def _below_diagonal(row: int, col: int, offset: int) -> int:
    """The number of a matrix's elements on or below a diagonal: the sum of clamp(i + offset + 1, 0, col) over all rows i."""
    width = offset + 1
    partial = min(max(-width, 0), row)  # the first row with an element on or below the diagonal
    full = min(max(col - width, partial), row)  # the first row that is entirely on or below the diagonal
    return (full - partial) * width + (full * (full - 1) - partial * (partial - 1)) // 2 + (row - full) * col


def _triangle_indices(name: str, row: int, col: int, offset: int, dtype, device) -> Tensor:
    """The indices of a triangle, computed in the engine row by row. Does not wait, because the client counts them."""
    for argument, size in (("row", row), ("col", col)):
        if operator.index(size) < 0:
            raise RuntimeError(f"{name}: {argument} must be non-negative, got {size}")
    if dtype not in (None, _C.int32, _C.int64):
        raise NotImplementedError(f"{name}: expected dtype to be int32 or int64, got {dtype}")
    offset = min(max(operator.index(offset), -row - 1), col + 1)
    rows = _torch.arange(row, device=device)
    if name == "tril_indices":
        count, first, widths = _below_diagonal(row, col, offset), None, (rows + (offset + 1)).clamp(0, col)
    else:
        first = (rows + offset).clamp(0, col)
        count, widths = row * col - _below_diagonal(row, col, offset - 1), col - first
    ends, elements = widths.cumsum(0), _torch.arange(count, device=device)
    row_of = _torch.searchsorted(ends, elements, right=True)
    column_of = elements - (ends - widths)[row_of]
    return _torch.stack([row_of, column_of if first is None else column_of + first[row_of]]).to(dtype or _C.int64)


def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype=None, layout=None, device=None, pin_memory: bool = False, requires_grad: bool = False
) -> Tensor:
    """The (row, column) indices of a matrix's upper triangle, as a tensor of two rows."""
    check_layout("triu_indices", layout)
    check_flags("triu_indices", pin_memory=pin_memory)
    return _triangle_indices("triu_indices", row, col, offset, dtype, device).requires_grad_(requires_grad)


def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype=None, layout=None, device=None, pin_memory: bool = False, requires_grad: bool = False
) -> Tensor:
    """The (row, column) indices of a matrix's lower triangle, as a tensor of two rows."""
    check_layout("tril_indices", layout)
    check_flags("tril_indices", pin_memory=pin_memory)
    return _triangle_indices("tril_indices", row, col, offset, dtype, device).requires_grad_(requires_grad)


def range(  # noqa: A001 - PyTorch's name
    start=0, end=None, step=1, *, out: Tensor | None = None, dtype=None, layout=None, device=None, pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """start, start + step, ..., including end: the deprecated form of arange.

    The result has the dtype of `out` if it is given, which keeps its sizes if it has as many elements. An integer result has
    the integer parts of `start` and `step`, as in PyTorch.
    """
    check_layout("range", layout)
    check_flags("range", pin_memory=pin_memory)
    if end is None:
        raise TypeError('range() missing 1 required positional arguments: "end"')
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) / step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if out is not None:
        if dtype not in (None, out.dtype):
            raise RuntimeError(f"[range] expected dtype to be that of out, {out.dtype}, got {dtype}")
        if out.requires_grad and _C.is_grad_enabled():
            raise RuntimeError("range(): functions with out=... arguments don't support automatic differentiation")
        dtype, device = out.dtype, out.device
    dtype = dtype or _C.default_dtype()
    if dtype.is_complex or dtype == _C.bool:
        raise NotImplementedError(f"[range] expected an integer or floating-point dtype, got {dtype}")
    count = int((end - start) / step) + 1
    kind = _C.float64 if dtype.is_floating_point else _C.int64
    if kind == _C.int64:
        start, step = int(start), int(step)
        if step == 0:
            raise RuntimeError(f"[range] expected a step of at least 1 for {dtype}")
    made = (_torch.arange(count, dtype=kind, device=device) * step + start).to(dtype)
    if out is not None:
        made = (out if out.numel() == count else out.resize_(count)).copy_(made.reshape(out.shape))
    return made.requires_grad_() if requires_grad else made


def scalar_tensor(
    s, *, dtype=None, layout=None, device=None, pin_memory: bool = False, requires_grad: bool = False
) -> Tensor:
    """A zero-dim tensor of a number, by default of the default dtype."""
    check_layout("scalar_tensor", layout)
    check_flags("scalar_tensor", pin_memory=pin_memory)
    return _C.tensor(s, dtype=dtype or _C.default_dtype(), device=device, requires_grad=requires_grad)


def _at_least(n: int):
    def at_least(*tensors):
        if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
            tensors = tuple(tensors[0])
        results = tuple(_expand_dims(t, n) for t in tensors)
        return results[0] if len(results) == 1 else results

    at_least.__name__, at_least.__doc__ = f"atleast_{n}d", f"Extends the tensors to at least {n} dimensions."
    return at_least


def _expand_dims(t: Tensor, n: int) -> Tensor:
    if t.dim() == 0:
        t = t.reshape(1)
    if n >= 2 and t.dim() == 1:
        t = t.unsqueeze(0)
    return t.unsqueeze(-1) if n == 3 and t.dim() == 2 else t


atleast_1d, atleast_2d, atleast_3d = _at_least(1), _at_least(2), _at_least(3)

for _function in (unique, unique_consecutive, argwhere, nonzero):
    setattr(Tensor, _function.__name__, _function)
