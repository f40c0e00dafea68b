"""Approximate singular values and principal components of large matrices (Halko, Martinsson, Tropp 2009)."""

from __future__ import annotations

from .. import _C
from .._C import Tensor

__all__ = ["get_approximate_basis", "pca_lowrank", "svd_lowrank"]


def get_approximate_basis(A: Tensor, q: int, niter: int = 2, M: Tensor | None = None) -> Tensor:  # noqa: N803
    """Returns q orthonormal columns that approximately span the range of A - M."""
    from . import qr

    A = A if M is None else A - M  # noqa: N806
    basis = qr(A @ _C.torch.randn(A.shape[-1], q, dtype=A.dtype, device=A.device))[0]
    for _ in range(niter):
        basis = qr(A @ qr(A.mH @ basis)[0])[0]
    return basis


def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:  # noqa: N803
    """Returns U, S and V of rank q such that U diag(S) V^H approximates A - M."""
    from . import svd

    q, niter = 6 if q is None else q, 2 if niter is None else niter
    A = A if M is None else A - M.expand(A.shape)  # noqa: N806
    if A.shape[-2] < A.shape[-1]:
        V, S, U = svd_lowrank(A.mH, q, niter)  # noqa: N806
        return U, S, V
    basis = get_approximate_basis(A, q, niter)
    U, S, Vh = svd(basis.mH @ A, False)  # noqa: N806
    return basis @ U, S, Vh.mH


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:  # noqa: N803
    """svd_lowrank of the rows, minus their mean if `center`. The columns of V are the principal directions."""
    rows, columns = A.shape[-2:]
    q = min(6, rows, columns) if q is None else q
    if not 0 <= q <= min(rows, columns):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(rows, columns)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(-2, True) if center else A, q, niter)
