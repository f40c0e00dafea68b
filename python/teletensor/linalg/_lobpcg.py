"""torch.lobpcg: some eigenvalues of a symmetric matrix.

Strided matrices are decomposed completely, in the engine; sparse ones by an iteration that multiplies them with a few vectors
(A. Knyazev, "Toward the Optimal Preconditioned Eigensolver", 2001).
"""

from __future__ import annotations

from typing import Any, Callable

from .. import _C
from .._C import Tensor
from .._functions import finfo
from .._grad_mode import no_grad
from .._layouts import strided
from .._options import reject_values


def lobpcg(
    A: Tensor, k: int | None = None, B: Tensor | None = None, X: Tensor | None = None, n: int | None = None,
    iK: Tensor | None = None, niter: int | None = None, tol: float | None = None, largest: bool | None = None,
    method: str | None = None, tracker: Callable | None = None, ortho_iparams: dict[str, Any] | None = None,
    ortho_fparams: dict[str, Any] | None = None, ortho_bparams: dict[str, Any] | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip # noqa: N803 - PyTorch's names
    """(the k largest or smallest eigenvalues of A x = lambda B x, their eigenvectors).

    Of strided matrices all eigenvalues are computed, exactly as by linalg.eigh, so the arguments of an iteration have no effect: the
    preconditioner iK, niter, tol, method and the parameters of its orthogonalization. If A or B is sparse, an iteration approximates
    the eigenvectors; it waits for the engine after every few steps.

    Args:
        A: symmetric matrices (..., m, m), of which k <= m / 3 eigenvalues are computed; a matrix if it is sparse.
        k: by default the number of columns of X, or 1.
        B: symmetric positive definite matrices, by default the identity.
        X: the first approximation (..., m, n), by default random for sparse matrices; gives k if k is None.
        iK: a preconditioner (m, m) for sparse matrices.
        niter: the largest number of steps for sparse matrices, by default 1,000; -1: no limit.
        tol: the relative size of residuals at which the iteration ends, by default the root of the dtype's precision.
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
    if any(t is not None and t.layout != strided for t in (A, B, iK)):
        if A.dim() != 2:
            raise NotImplementedError(f"[lobpcg] expected a matrix with sparse arguments, got {A.dim()} dimensions")
        if any(t is not None and t.requires_grad for t in (A, B)):
            raise NotImplementedError("[lobpcg] expected sparse matrices that do not require grad: the iteration has no derivative")
        start = _C.torch.randn(m, columns, dtype=A.dtype, device=A.device) if X is None else X
        is_largest = largest is None or largest
        with no_grad():
            values, vectors = _iterated(A, B, start, iK, 1000 if niter is None else niter, tol, is_largest)
        return values[:count], vectors[:, :count]
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


_STEPS_BETWEEN_READS = 5


def _iterated(
    a: Tensor, b: Tensor | None, x: Tensor, preconditioner: Tensor | None, num_steps: int, tolerance: float | None, largest: bool
) -> tuple[Tensor, Tensor]:
    """The eigenvalues and eigenvectors to which steps from `x` lead, the first ones first.

    Each step finds the best vectors in the space of the present ones, their residuals and the last step's changes.
    """
    from .. import linalg

    n = x.shape[1]
    limit = finfo(x.dtype).eps ** 0.5 if tolerance is None or tolerance < 0 else tolerance
    scale = (a @ x).norm() / x.norm()
    spaces, step = [x], 0
    while True:
        basis = linalg.qr(spaces[0] if len(spaces) == 1 else _C.torch.cat(spaces, 1)).Q
        images = a @ basis
        b_images = basis if b is None else b @ basis
        values, vectors = _ritz(basis.mT @ images, None if b is None else basis.mT @ b_images, n, largest)
        x = basis @ vectors
        residuals = images @ vectors - (b_images @ vectors) * values
        step += 1
        is_last = num_steps >= 0 and step > num_steps
        if is_last or step % _STEPS_BETWEEN_READS == 0:
            sizes = residuals.norm(dim=0) / (x.norm(dim=0) * (scale + values.abs()))
            if is_last or bool((sizes < limit).all()):
                return values, x
        directions = residuals if preconditioner is None else preconditioner @ residuals
        changes = [] if len(spaces) == 1 else [basis[:, n:] @ vectors[n:]]
        spaces = [x, directions, *changes]


def _ritz(a: Tensor, b: Tensor | None, n: int, largest: bool) -> tuple[Tensor, Tensor]:
    """The n first eigenvalues and eigenvectors of small strided matrices."""
    from .. import linalg

    if b is None:
        values, vectors = linalg.eigh((a + a.mT) / 2)
    else:
        factor = linalg.cholesky((b + b.mT) / 2)
        half = linalg.solve_triangular(factor, a, upper=False)
        whole = linalg.solve_triangular(factor, half.mT, upper=False)
        values, vectors = linalg.eigh((whole + whole.mT) / 2)
        vectors = linalg.solve_triangular(factor.mT, vectors, upper=True)
    if largest:
        values, vectors = values.flip(0), vectors.flip(1)
    return values[:n], vectors[:, :n]
