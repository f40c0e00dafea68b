"""Norms of vectors and matrices."""

from __future__ import annotations

import math

from .. import _C
from .._C import Tensor
from .._integers import is_int
from ._eigen import svdvals
from ._factors import inv_ex

_torch, _ops = _C.torch, _C.ops


def _check_dtype(name: str, A: Tensor, dtype) -> None:
    """Raises PyTorch's errors unless `dtype` is None or represents every value of the input's dtype."""
    if not (A.is_floating_point() or A.is_complex()):
        raise NotImplementedError(f"linalg.{name}: Expected a floating point or complex tensor as input. Got {A.dtype}")
    if dtype is None:
        return
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"linalg.{name}: dtype should be floating point or complex, but got {dtype}")
    if dtype.is_complex != A.is_complex():
        kind = "complex" if A.is_complex() else "real"
        raise RuntimeError(f"linalg.{name}: dtype should be {kind} for {kind} inputs, but got {dtype}")
    if _C.promote_types(A.dtype, dtype) != dtype:
        raise RuntimeError(
            f"linalg.{name}: the dtype of the input ({A.dtype}) should be convertible without narrowing to the specified "
            f"dtype ({dtype})"
        )


def vector_norm(x: Tensor, ord=2, dim=None, keepdim: bool = False, *, dtype=None) -> Tensor:
    """The vector norm of the elements along dim, or of all elements if dim is None."""
    _check_dtype("vector_norm", x, dtype)
    return _ops.vector_norm(x, float(ord), dim, keepdim, dtype=dtype)


def matrix_norm(A: Tensor, ord="fro", dim=(-2, -1), keepdim: bool = False, *, dtype=None) -> Tensor:
    """The norm of each matrix. `ord` is 'fro', 'nuc', inf, 1 or 2, or a negated number for minima instead of maxima."""
    if is_int(dim) or len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {dim}")
    if A.dim() < 2:
        raise RuntimeError("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
    _check_dtype("matrix_norm", A, dtype)
    if len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    rows, columns = (_wrapped(d, A.dim()) for d in dim)
    if rows == columns:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    A = A if dtype is None else A.to(dtype)
    if ord == "fro":
        return _ops.vector_norm(A, 2.0, [rows, columns], keepdim)
    if ord == "nuc" or ord in (2, -2):
        S = svdvals(A.movedim((rows, columns), (-2, -1)))
        value = S.sum(-1) if ord == "nuc" or ord == 2 and not S.shape[-1] else S.amax(-1) if ord == 2 else S.amin(-1)
        return _restore_dims(value, rows, columns) if keepdim else value
    if isinstance(ord, str) or abs(ord) not in (1, math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    summed, left = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = _ops.vector_norm(A, 1.0, [summed], True)
    if ord > 0 and sums.shape[left] == 0:
        value = sums.sum([left], True)  # the maximum of an empty set is 0
    else:
        value = sums.amax([left], True) if ord > 0 else sums.amin([left], True)
    return value if keepdim else value.squeeze((rows, columns))


def _wrapped(dim: int, ndim: int) -> int:
    if not -ndim <= dim < ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})")
    return dim % ndim


def _restore_dims(value: Tensor, rows: int, columns: int) -> Tensor:
    for d in sorted((rows, columns)):
        value = value.unsqueeze(d)
    return value


def norm(A: Tensor, ord=None, dim=None, keepdim: bool = False, *, dtype=None) -> Tensor:
    """vector_norm or matrix_norm, depending on ord and dim; if both are None, the norm of all elements as a vector."""
    if is_int(dim):
        dim = (dim,)
    if isinstance(ord, str) or (ord is not None and (len(dim) if dim is not None else A.dim()) == 2):
        if dim is None and A.dim() != 2:
            raise RuntimeError(f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.dim()}D")
        return matrix_norm(A, ord, dim or (-2, -1), keepdim, dtype=dtype)
    if ord is not None and dim is None and A.dim() > 2:
        raise RuntimeError(f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.dim()}D")
    return vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


def cond(A: Tensor, p=None) -> Tensor:
    """The condition number: from singular values for None, 2, -2 and 'nuc', otherwise norm(A, p) * norm(inv(A), p).

    Infinity for singular matrices, 0 for empty ones.
    """
    if A.dim() < 2:
        raise RuntimeError("linalg.cond: The input tensor A must have at least 2 dimensions.")
    if p not in (None, 2, -2, "fro", "nuc", 1, -1, math.inf, -math.inf):
        raise ValueError(f"linalg.cond got an invalid norm type: {p}")
    if A.numel() == 0:
        return matrix_norm(A) * 0
    if p in (None, 2, -2, "nuc"):
        S = svdvals(A)
        if p == "nuc":
            return S.sum(-1) * S.reciprocal().sum(-1)
        return S[..., -1] / S[..., 0] if p == -2 else S[..., 0] / S[..., -1]
    inverse, info = inv_ex(A)
    return (matrix_norm(inverse, p) * matrix_norm(A, p)).masked_fill(info > 0, math.inf)
