"""Eigenvalues, singular values, and functions computed from them."""

from __future__ import annotations

from .. import _C
from .._C import LinAlgError, Tensor
from . import _results as results
from ._factors import qr, solve_triangular

_torch, _ops = _C.torch, _C.ops
_EPSILON = {_C.float32: 2.0**-23, _C.float64: 2.0**-52, _C.complex64: 2.0**-23, _C.complex128: 2.0**-52}


def eigh(A: Tensor, UPLO: str = "L") -> results.Eigh:
    """Ascending eigenvalues, and eigenvectors as columns, of symmetric or Hermitian matrices. Reads one triangle."""
    results.require_square(A, "linalg.eigh")
    return results.Eigh(*_ops.eigh_decomposed(A, UPLO))


def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """Ascending eigenvalues of symmetric or Hermitian matrices."""
    results.require_square(A, "linalg.eigvalsh")
    return _ops.eigh_decomposed(A, UPLO, A.requires_grad)[0]


def eig(A: Tensor) -> results.Eig:
    """Complex eigenvalues, and eigenvectors as columns of length 1, of square matrices, in no particular order."""
    results.require_square(A, "linalg.eig")
    return results.Eig(*_ops.eig_decomposed(A))


def eigvals(A: Tensor) -> Tensor:
    """Complex eigenvalues of square matrices, in no particular order."""
    results.require_square(A, "linalg.eigvals")
    return _ops.eig_decomposed(A, A.requires_grad)[0]


def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> results.SVD:
    """U, S and Vh with U diag(S) Vh = A and descending singular values."""
    _reject_driver("linalg.svd", driver)
    results.require_matrix(A, "linalg.svd")
    return results.SVD(*_ops.svd_decomposed(A, full_matrices))


def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """Descending singular values."""
    _reject_driver("linalg.svdvals", driver)
    results.require_matrix(A, "linalg.svdvals")
    return _ops.svd_decomposed(A, False, A.requires_grad)[1]


def _reject_driver(name: str, driver: str | None) -> None:
    if driver is not None:
        raise RuntimeError(f"{name}: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.")


def torch_svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> results.OldSVD:
    """torch.svd: U, S and V with U diag(S) V^H = input. Without compute_uv, U and V are zeros."""
    if not compute_uv:
        m, n = input.shape[-2:]
        batch = input.shape[:-2]
        return results.OldSVD(input.new_zeros([*batch, m, m]), svdvals(input), input.new_zeros([*batch, n, n]))
    U, S, Vh = svd(input, not some)
    return results.OldSVD(U, S, Vh.mH)


def _tolerance(S: Tensor, sizes, atol, rtol) -> Tensor:
    """Returns the tolerance of each matrix: the largest singular value that counts as zero."""
    largest = S.amax(-1, True) if S.shape[-1] else S.sum(-1, True)
    if rtol is None:
        given = isinstance(atol, Tensor) or (atol is not None and atol > 0)
        eps = _EPSILON[S.dtype] * max(sizes[-2:])
        rtol = _torch.where(atol > 0, 0.0, eps) if isinstance(atol, Tensor) else 0.0 if given else eps
    atol = 0.0 if atol is None else atol
    relative = (rtol.unsqueeze(-1) if isinstance(rtol, Tensor) else rtol) * largest
    if isinstance(atol, Tensor):
        return _torch.maximum(atol.unsqueeze(-1).to(S.dtype), relative)
    return relative.clamp(min=float(atol))


def pinv(A: Tensor, rcond=None, hermitian: bool = False, *, atol=None, rtol=None) -> Tensor:
    """The Moore-Penrose pseudo-inverse; singular values up to the tolerance count as zero. ``rcond`` is ``rtol``."""
    results.require_matrix(A, "linalg.pinv")
    rtol = rcond if rtol is None else rtol
    plain = A.detach()
    if plain.numel() == 0:
        return A.mH.clone()
    if hermitian:
        values, vectors = eigh(plain)
        U, S, Vh = vectors, values.abs(), vectors.mH
        inverse = _torch.where(S > _tolerance(S, A.shape, atol, rtol), 1 / values, 0.0)
    else:
        U, S, Vh = svd(plain, False)
        inverse = _torch.where(S > _tolerance(S, A.shape, atol, rtol), 1 / S, 0.0)
    product = (Vh.mH * inverse.unsqueeze(-2)) @ U.mH  # autocast computes it in lower precision
    return _ops.pseudo_inverse_of(A, product.to(A.dtype)).to(product.dtype)


def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """torch.pinverse: linalg.pinv with a relative tolerance."""
    return pinv(input, rtol=rcond)


def matrix_rank(A: Tensor, tol=None, hermitian: bool = False, *, atol=None, rtol=None) -> Tensor:
    """The number of singular values above the tolerance."""
    results.require_matrix(A, "linalg.matrix_rank")
    if tol is not None:
        atol, rtol = tol, 0.0
    plain = A.detach()
    S = eigvalsh(plain).abs() if hermitian else svdvals(plain)
    if not S.shape[-1]:
        return _torch.zeros(A.shape[:-2], dtype=_C.int64, device=A.device)
    return (S > _tolerance(S, A.shape, atol, rtol)).sum(-1)


def lstsq(A: Tensor, b: Tensor, rcond=None, *, driver: str | None = None) -> results.Lstsq:
    """The X of minimum norm among those that minimise ||A X - B||. The driver 'gels' assumes full rank.

    As in PyTorch, every driver except gelsy (the default) returns residuals if A has more rows than columns. Every
    driver except gels returns the rank; gelsd and gelss return singular values. Unlike in PyTorch, residuals are also
    returned for matrices of less than full rank.

    Raises:
        LinAlgError: the driver is gels, and a matrix other than zero does not have full rank.
    """
    driver = driver or "gelsy"
    if driver not in ("gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(
            f"torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), but it is set to {driver!r}"
        )
    results.require_matrix(A, "torch.linalg.lstsq")
    if A.dtype not in _EPSILON:
        raise RuntimeError(f"This function doesn't handle types other than float and double, got {A.dtype}")
    vector = b.dim() == A.dim() - 1
    right = b.unsqueeze(-1) if vector else b
    if right.shape[-2] != A.shape[-2]:
        raise RuntimeError("torch.linalg.lstsq: input.size(-2) should match other.size(-2)")
    A, right = results.broadcast_batches(A, right)
    m, n = A.shape[-2:]
    empty = _torch.empty([0], dtype=A.dtype.to_real(), device=A.device)
    rank, S = _torch.empty([0], dtype=_C.int64, device=A.device), empty
    if driver == "gels":
        solution = _full_rank_solution(A, right)
    else:
        rtol = _EPSILON[A.dtype] * max(m, n) if rcond is None else rcond
        solution = pinv(A, atol=0.0, rtol=rtol) @ right
        rank = matrix_rank(A, atol=0.0, rtol=rtol)
        S = svdvals(A.detach()) if driver != "gelsy" else empty
    residuals = solution.abs().reshape(-1)[:0]
    if m > n and driver != "gelsy":
        residuals = (A @ solution - right).abs().square().sum(-2)
        residuals = residuals.squeeze(-1) if vector else residuals
    return results.Lstsq(solution.squeeze(-1) if vector else solution, residuals, rank, S)


def _full_rank_solution(A: Tensor, B: Tensor) -> Tensor:
    """The solution by QR; zero for a matrix of zeros, as LAPACK's gels.

    Raises:
        LinAlgError: another matrix does not have full rank.
    """
    m, n = A.shape[-2:]
    is_tall, is_zero = m >= n, (A.detach() == 0).all(-1).all(-1)[..., None, None]
    A = _torch.where(is_zero, _torch.eye(m, n, dtype=A.dtype, device=A.device), A)
    Q, R = qr(A if is_tall else A.mH)
    if bool((R.detach().diagonal(0, -2, -1) == 0).any()):
        raise LinAlgError(
            "torch.linalg.lstsq: The least squares solution could not be computed because the input matrix does not have full rank"
        )
    solution = solve_triangular(R, Q.mH @ B, upper=True) if is_tall else Q @ solve_triangular(R.mH, B, upper=False)
    return _torch.where(is_zero, 0, solution)
