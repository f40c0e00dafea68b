"""torch.lobpcg: some eigenvalues of a symmetric matrix, computed by a full decomposition in the engine."""

from __future__ import annotations

from typing import Any, Callable

from .._C import Tensor
from .._options import reject_values


def lobpcg(
    A: Tensor, k: int | None = None, B: Tensor | None = None, X: Tensor | None = None, n: int | None = None,
    iK: Tensor | None = None, niter: int | None = None, tol: float | None = None, largest: bool | None = None,
    method: str | None = None, tracker: Callable | None = None, ortho_iparams: dict[str, Any] | None = None,
    ortho_fparams: dict[str, Any] | None = None, ortho_bparams: dict[str, Any] | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip # noqa: N803 - PyTorch's names
    """(the k largest or smallest eigenvalues of A x = lambda B x, their eigenvectors).

    All eigenvalues are computed, exactly as by linalg.eigh, so the arguments of an iteration have no effect: the
    preconditioner iK, niter, tol, method and the parameters of its orthogonalization.

    Args:
        A: symmetric matrices (..., m, m), of which k <= m / 3 eigenvalues are computed.
        k: by default the number of columns of X, or 1.
        B: symmetric positive definite matrices, by default the identity.
        X: PyTorch's first approximation (..., m, n); gives k if k is None.
        largest: whether the largest eigenvalues are computed, in descending order; by default True.
    """
    from .. import linalg

    reject_values("lobpcg", "there is no iteration to track", tracker=tracker)
    if not A.is_floating_point():
        raise ValueError(f"lobpcg: expected a real floating-point matrix, got {A.dtype}")
    if method not in (None, "basic", "ortho"):
        raise ValueError(f"lobpcg: expected method to be basic or ortho, got {method!r}")
    m = A.shape[-1]
    count = (X.shape[-1] if X is not None else 1) if k is None else k
    columns = (X.shape[-1] if X is not None else count) if n is None else n
    if m < 3 * columns:
        raise ValueError(f"LPBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3 x the number of requested "
                         f"eigenpairs (={columns})")  # fmt: skip
    if B is None:
        values, vectors = linalg.eigh(A)
    else:
        factor = linalg.cholesky(B)
        half = linalg.solve_triangular(factor, A, upper=False)
        values, vectors = linalg.eigh(linalg.solve_triangular(factor, half.mT, upper=False))
        vectors = linalg.solve_triangular(factor.mT, vectors, upper=True)
    if largest is None or largest:
        values, vectors = values.flip(-1), vectors.flip(-1)
    return values[..., :count], vectors[..., :count]
