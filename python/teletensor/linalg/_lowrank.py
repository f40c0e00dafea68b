"""Approximate singular values and principal components of large matrices (Halko, Martinsson, Tropp 2009)."""

from __future__ import annotations

from .. import _C
from .._C import Tensor

__all__ = ["get_approximate_basis", "pca_lowrank", "svd_lowrank"]


def _is_sparse(A: Tensor) -> bool:  # noqa: N803
    return A.layout != "torch.strided"


def _product(A: Tensor, M: Tensor | None, x: Tensor) -> Tensor:  # noqa: N803
    """(A - M) x, without the difference: A may be sparse."""
    return A @ x if M is None else A @ x - M @ x


def get_approximate_basis(A: Tensor, q: int, niter: int = 2, M: Tensor | None = None) -> Tensor:  # noqa: N803
    """Returns q orthonormal columns that approximately span the range of A - M."""
    from . import qr

    if M is not None and not _is_sparse(A):
        A, M = A - M, None  # noqa: N806
    adjoint = None if M is None else M.mH
    basis = qr(_product(A, M, _C.torch.randn(A.shape[-1], q, dtype=A.dtype, device=A.device)))[0]
    for _ in range(niter):
        basis = qr(_product(A, M, qr(_product(A.mH, adjoint, basis))[0]))[0]
    return basis


def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:  # noqa: N803
    """Returns U, S and V of rank q such that U diag(S) V^H approximates A - M. A may be sparse; products with it are not strided."""
    from . import svd

    q, niter = 6 if q is None else q, 2 if niter is None else niter
    M = None if M is None else M.expand(A.shape)  # noqa: N806
    if M is not None and not _is_sparse(A):
        A, M = A - M, None  # noqa: N806
    if A.shape[-2] < A.shape[-1]:
        V, S, U = svd_lowrank(A.mH, q, niter, None if M is None else M.mH)  # noqa: N806
        return U, S, V
    basis = get_approximate_basis(A, q, niter, M)
    U, S, Vh = svd(_product(A.mH, None if M is None else M.mH, basis).mH if _is_sparse(A) else basis.mH @ A, False)  # noqa: N806
    return basis @ U, S, Vh.mH


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:  # noqa: N803
    """svd_lowrank of the rows, minus their mean if `center`. The columns of V are the principal directions."""
    rows, columns = A.shape[-2:]
    q = min(6, rows, columns) if q is None else q
    if not 0 <= q <= min(rows, columns):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(rows, columns)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if center and _is_sparse(A):
        if A.dim() != 2:
            raise ValueError("pca_lowrank input is expected to be 2-dimensional tensor")
        means = (_C.torch.ones(1, rows, dtype=A.dtype, device=A.device) @ A) / rows
        return svd_lowrank(A, q, niter, M=means)
    return svd_lowrank(A - A.mean(-2, True) if center else A, q, niter)
