"""Linear algebra on Tensors, with the standard's signatures."""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import _C, _functions, linalg
from .._C import Tensor
from .._ops import einsum as _einsum
from . import _dtypes, _reductions
from ._dtypes import promote_to_tensors

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power",
    "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot",
    "trace", "vecdot", "vector_norm",
]  # fmt: skip

_torch = _C.torch


class SVD(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The matrix product."""
    return _torch.matmul(*promote_to_tensors(x1, x2))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The array with its last two dimensions swapped."""
    if x.ndim < 2:
        raise ValueError(f"[matrix_transpose] expected an array of at least 2 dimensions, got {x.ndim}")
    return x.transpose(-2, -1)


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Any = 2) -> Tensor:
    """Contracts the last `axes` axes of x1 with the first `axes` axes of x2, or two lists of axes."""
    return _einsum.tensordot(*promote_to_tensors(x1, x2), dims=axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The dot products of vectors along an axis; x1 is conjugated."""
    x1, x2 = (x.movedim(axis, -1) for x in promote_to_tensors(x1, x2))
    if x1.shape[-1] != x2.shape[-1]:
        raise ValueError(f"[vecdot] expected vectors of the same length, got {x1.shape[-1]} and {x2.shape[-1]}")
    x1 = x1.conj() if x1.dtype.is_complex else x1
    return (x1.unsqueeze(-2) @ x2.unsqueeze(-1)).squeeze(-1).squeeze(-1)


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The Cholesky factors of positive definite matrices: lower triangular, or upper triangular if `upper` is set."""
    return linalg.cholesky(x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross products of vectors of three elements along an axis."""
    x1, x2 = promote_to_tensors(x1, x2)
    min_ndim = min(x1.ndim, x2.ndim)
    if not -min_ndim <= axis < min_ndim or x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(
            f"[cross] expected 3 elements along axis {axis}, got shapes {tuple(x1.shape)} and {tuple(x2.shape)}"
        )
    return linalg.cross(*_functions.broadcast_tensors(x1, x2), dim=axis)


def det(x: Tensor, /) -> Tensor:
    """The determinants of matrices."""
    return linalg.det(x)


def slogdet(x: Tensor, /) -> tuple[Tensor, Tensor]:
    """(sign, logabsdet) of the determinants of matrices."""
    return linalg.slogdet(x)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The diagonals of matrices."""
    return x.diagonal(offset, -2, -1)


def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sums of the diagonals of matrices."""
    return _reductions.sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def eigh(x: Tensor, /) -> tuple[Tensor, Tensor]:
    """(eigenvalues, eigenvectors) of symmetric matrices."""
    return linalg.eigh(x)


def eigvalsh(x: Tensor, /) -> Tensor:
    """The eigenvalues of symmetric matrices."""
    return linalg.eigvalsh(x)


def inv(x: Tensor, /) -> Tensor:
    """The inverses of matrices."""
    return linalg.inv(x)


def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The pseudo-inverses of matrices."""
    return linalg.pinv(x, rtol=_tolerance(x) if rtol is None else rtol)


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The number of singular values that exceed rtol times the largest singular value."""
    return linalg.matrix_rank(x, rtol=_tolerance(x) if rtol is None else rtol)


def _tolerance(x: Tensor) -> float:
    return max(x.shape[-2:]) * _dtypes.finfo(x.dtype).eps


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:  # noqa: A002 - the standard's name
    """The norms of matrices."""
    return linalg.matrix_norm(x, ord, keepdim=keepdims)


def vector_norm(x: Tensor, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor:  # noqa: A002
    """The vector norms over the given axes, or over all axes if axis is None."""
    if axis == ():
        return (x != 0).to(x.abs().dtype) if ord == 0 else x.abs()
    return linalg.vector_norm(x, ord, axis, keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """The n-th powers of matrices; a negative n raises the inverses to the power -n."""
    return linalg.matrix_power(x, n)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The outer product of two vectors."""
    return _torch.outer(*promote_to_tensors(x1, x2))


def qr(x: Tensor, /, *, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """(Q, R): an orthonormal and an upper triangular factor."""
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr(): mode must be 'reduced' or 'complete', got {mode!r}")
    return linalg.qr(x, mode)


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVD:
    """(U, S, Vh): the singular value decompositions of matrices."""
    return SVD(*linalg.svd(x, full_matrices=full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    """The singular values of matrices."""
    return linalg.svdvals(x)


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Solves x1 X = x2 for X: a vector if x2 has one dimension, otherwise matrices."""
    x1, x2 = promote_to_tensors(x1, x2)
    if x2.ndim == 1:
        return linalg.solve(x1, x2.unsqueeze(-1)).squeeze(-1)
    batch = max(x1.ndim, x2.ndim) - x2.ndim  # PyTorch may treat x2 with fewer dimensions as a batch of vectors
    return linalg.solve(x1, x2.reshape((1,) * batch + tuple(x2.shape)))
