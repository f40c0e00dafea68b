"""LU, Cholesky and QR factorisations, and solutions computed from them."""

from __future__ import annotations

from .. import _C
from .._C import Tensor
from .._layouts import require_strided
from . import _results as results

_torch, _ops = _C.torch, _C.ops


def _factored(A: Tensor, checked_by: str) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the LU factorisation of A without a gradient, for functions whose gradient is computed from A itself.

    A singular matrix causes a LinAlgError that names the function `checked_by`, unless that is empty.
    """
    return _ops.lu_factored(A.detach(), checked_by)


def inv_ex(A: Tensor, *, check_errors: bool = False) -> results.InvEx:
    """The inverse, and for each matrix the position of the first zero pivot of its LU, counted from 1 (0: none)."""
    results.require_square(A, "linalg.inv")
    lu, pivots, info = _factored(A, "linalg.inv" if check_errors else "")
    eye = results.identity(A.shape[-1], A, A.shape[:-2])
    return results.InvEx(_ops.lu_solved(A, eye, lu, pivots), info)


def inv(A: Tensor) -> Tensor:
    """The inverse; LinAlgError if a matrix is singular."""
    return inv_ex(A, check_errors=True).inverse


def det(A: Tensor) -> Tensor:
    """The determinant."""
    results.require_square(A, "linalg.det")
    lu, pivots, _ = _factored(A, "")
    return _ops.lu_determinant(A, lu, pivots)


def slogdet(A: Tensor) -> results.Slogdet:
    """The determinant's sign and the logarithm of its magnitude."""
    results.require_square(A, "linalg.slogdet")
    lu, pivots, _ = _factored(A, "")
    return results.Slogdet(*_ops.lu_log_determinant(A, lu, pivots))


def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant; NaN if the determinant is negative."""
    sign, size = slogdet(input)
    if input.dtype.is_complex:
        return _torch.complex(size, sign.angle())
    return _torch.where(sign == -1, float("nan"), size)


def _is_vector(A: Tensor, B: Tensor) -> bool:
    return B.dim() == 1 or (A.dim() - 1 == B.dim() and B.shape == A.shape[:-1])


def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> results.SolveEx:
    """X with A X = B (or X A = B), and for each matrix the position of the first zero pivot of its LU."""
    results.require_square(A, "linalg.solve")
    if is_vector := _is_vector(A, B):
        if not left:
            raise RuntimeError("linalg.solve: Vector broadcasting of the left hand side is not supported for left=False.")
    else:
        results.require_matrix(B, "linalg.solve")
        if A.shape[-1] != B.shape[-2 if left else -1]:
            raise RuntimeError(
                f"linalg.solve: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
                f"({A.shape[-2]}x{A.shape[-1]} and {B.shape[-2]}x{B.shape[-1]})"
            )
    lu, pivots, info = _factored(A, "torch.linalg.solve" if check_errors else "")
    if is_vector:
        return results.SolveEx(_solve_with(A, B.unsqueeze(-1), lu, pivots, False).squeeze(-1), info)
    if left:
        return results.SolveEx(_solve_with(A, B, lu, pivots, False), info)
    return results.SolveEx(_solve_with(A, B.mT, lu, pivots, True).mT, info)


def _solve_with(A: Tensor, B: Tensor, lu: Tensor, pivots: Tensor, transposed: bool) -> Tensor:
    """Solves A X = B or, if transposed, A^T X = B from A's LU. The batch dimensions of A and B broadcast."""
    A, B = results.broadcast_batches(A, B)
    return _ops.lu_solved(A, B, lu.expand(A.shape), pivots.expand(A.shape[:-1]), transposed)


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """X with A X = B (or X A = B); LinAlgError if a matrix is singular."""
    return solve_ex(A, B, left=left, check_errors=True).result


def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> results.LUFactorEx:
    """L and U in one matrix, the pivots (row indices counted from 1), and the position of the first zero pivot."""
    if not pivot and A.numel():
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    results.require_matrix(A, "torch.linalg.lu_factor_ex")
    return results.LUFactorEx(*_ops.lu_factored(A, "torch.linalg.lu_factor" if check_errors else ""))


def lu_factor(A: Tensor, *, pivot: bool = True) -> results.LUFactor:
    """L and U in one matrix, and the pivots; LinAlgError if a matrix is singular."""
    return results.LUFactor(*lu_factor_ex(A, pivot=pivot, check_errors=True)[:2])


def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> results.LUUnpack:
    """P, L and U from the results of lu_factor. A matrix that is not requested is an empty tensor."""
    require_strided("lu_unpack", LU_data, LU_pivots)
    m, n = LU_data.shape[-2:]
    k = min(m, n)
    P, L = LU_data.new_empty([0]), LU_data.reshape(-1)[:0]
    U = L
    if unpack_data:
        eye = results.eye(m, k, LU_data)
        L, U = LU_data[..., :k].tril(-1) + eye, LU_data[..., :k, :].triu()
    if unpack_pivots:
        if LU_pivots.dtype != _C.int32:
            raise RuntimeError("torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.")
        order = _ops.lu_permutation(LU_pivots, m).unsqueeze(-2)
        rows = results.on_mesh_of(order, _torch.arange(m, dtype=order.dtype, device=order.device)).unsqueeze(-1)
        P = (order == rows).to(LU_data.dtype)
    return results.LUUnpack(P, L, U)


def lu(A: Tensor, *, pivot: bool = True) -> results.LU:
    """P, L and U with P L U = A."""
    factors = lu_factor_ex(A, pivot=pivot)
    return results.LU(*lu_unpack(factors.LU, factors.pivots, unpack_pivots=pivot))


def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """X with A X = B (or X A = B, or with the adjoint of A), from lu_factor(A)."""
    require_strided("linalg.lu_solve", LU, pivots, B)
    results.require_square(LU, "torch.linalg.lu_solve")
    if not left:  # X A = B is A^H X^H = B^H
        return lu_solve(LU, pivots, B.mH, adjoint=not adjoint).mH
    LU, B = results.broadcast_batches(LU, B)
    n = LU.shape[-1]
    order = _ops.lu_permutation(pivots.expand(LU.shape[:-1]), n).unsqueeze(-1)
    if adjoint:
        LU = LU.conj()
        inner = _ops.triangular_solved(LU, B, True, True, False)
        inner = _ops.triangular_solved(LU, inner, False, True, True)
        return _torch.gather(inner, -2, order.argsort(-2).expand(B.shape))
    inner = _ops.triangular_solved(LU, _torch.gather(B, -2, order.expand(B.shape)), False, False, True)
    return _ops.triangular_solved(LU, inner, True, False, False)


def solve_triangular(
    A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """X with A X = B (or X A = B); reads only one triangle of A."""
    results.require_square(A, "linalg.solve_triangular")
    results.require_matrix(B, "linalg.solve_triangular")
    if A.shape[-1] != B.shape[-2 if left else -1]:
        raise RuntimeError(
            f"linalg.solve_triangular: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
            f"({A.shape[-2]}x{A.shape[-1]} and {B.shape[-2]}x{B.shape[-1]})"
        )
    A, B = results.broadcast_batches(A, B)
    if left:
        return _ops.triangular_solved(A, B, upper, False, unitriangular)
    return _ops.triangular_solved(A, B.mT, upper, True, unitriangular).mT


def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> results.TriangularSolve:
    """X with A X = b or A^T X = b, and A: the deprecated form of solve_triangular."""
    A, b = results.broadcast_batches(A, b)
    return results.TriangularSolve(_ops.triangular_solved(A, b, upper, transpose, unitriangular), A.clone())


def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> results.CholeskyEx:
    """L with L L^H = A (its adjoint if upper), and the order of the first leading minor that is not positive."""
    results.require_square(A, "linalg.cholesky")
    L, info = _ops.cholesky_factored(A.mH if upper else A, "linalg.cholesky" if check_errors else "")
    return results.CholeskyEx(L.mH if upper else L, info)


def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """L with L L^H = A (its adjoint if upper); LinAlgError if a matrix is not positive-definite."""
    return cholesky_ex(A, upper=upper, check_errors=True).L


def cholesky_solve(input: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    """X with A X = input, from A's Cholesky factor, input2."""
    require_strided("cholesky_solve", input, input2)
    L, B = results.broadcast_batches(input2, input)
    L = L.mH if upper else L
    inner = _ops.triangular_solved(L, B, False, False)
    return _ops.triangular_solved(L.conj(), inner, False, True)


def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """The inverse of A, from its Cholesky factor; LinAlgError if there is a zero on the factor's diagonal."""
    results.require_square(L, "cholesky_inverse")
    _factored(L.triu() if upper else L.mT.triu(), "cholesky_inverse")  # the LU of an upper triangle is the triangle
    return cholesky_solve(results.identity(L.shape[-1], L, L.shape[:-2]), L, upper)


def qr(A: Tensor, mode: str = "reduced") -> results.QR:
    """Q with orthonormal columns and upper triangular R with Q R = A."""
    results.require_matrix(A, "linalg.qr")
    return results.QR(*_ops.qr_factored(A, mode))


def geqrf(input: Tensor) -> results.Geqrf:
    """A matrix of R and, below its diagonal, the vectors of the Householder reflections; and the factors tau."""
    return results.Geqrf(*_ops.householder_factored(input))


def householder_product(A: Tensor, tau: Tensor) -> Tensor:
    """The first columns of the product of the Householder reflections given by A's columns and tau."""
    m, n = A.shape[-2:]
    if m < n:
        raise RuntimeError("torch.linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if tau.dtype != A.dtype:
        raise RuntimeError(f"torch.linalg.householder_product: tau dtype {tau.dtype} does not match input dtype {A.dtype}")
    eye = results.eye(m, n, A)
    return _reflect(A, tau, eye.expand(*A.shape[:-2], m, n), forward=False)


def _reflect(A: Tensor, tau: Tensor, other: Tensor, forward: bool) -> Tensor:
    """Returns H1 H2 ... Hk other or, if forward, Hk^H ... H2^H H1^H other."""
    vectors = A.tril(-1) + results.eye(*A.shape[-2:], A)
    k, tau = tau.shape[-1], tau.conj() if forward else tau
    for i in range(k) if forward else reversed(range(k)):
        v = vectors[..., i : i + 1]
        other = other - tau[..., i, None, None] * (v @ (v.mH @ other))
    return other


def ormqr(input: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """Multiplies input3 by Q, as given by geqrf (input, input2), or by its adjoint if `transpose`, from the left or right."""
    require_strided("ormqr", input, input2, input3)
    tau, other = input2, input3
    if min(input.dim(), other.dim()) < 2:
        raise RuntimeError("torch.ormqr: input must have at least 2 dimensions.")
    count = min(other.shape[-2 if left else -1], input.shape[-1])
    if tau.shape[-1] != count:
        raise RuntimeError("torch.ormqr: tau.shape[-1] must be equal to min(other.shape[-2], input.shape[-1])")
    if left:
        return _reflect(input, tau, other, forward=transpose)
    return _reflect(input, tau, other.mH, forward=not transpose).mH


def _refuse_gradient(name: str, result: Tensor, *inputs: Tensor) -> None:
    """Records that `result` depends on the inputs, but raises PyTorch's error in a backward pass."""

    def backward(gradients, create_graph):
        raise RuntimeError(f"derivative for aten::{name} is not implemented")

    if _C.is_grad_enabled() and any(t.requires_grad for t in inputs):
        _C.custom_function(list(inputs), [result], backward, "NotImplemented")


def _require_ldl(A: Tensor, name: str) -> None:
    results.require_matrix(A, name)
    results.require_square(A, name)
    if not (A.dtype.is_floating_point or A.dtype.is_complex):
        raise NotImplementedError(f"{name}: Expected a floating point or complex tensor as input. Got {A.dtype}")


def ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> results.LDLFactorEx:
    """L and the block diagonal D with L D L^T = A (L^H if hermitian), the pivots, and the position of the first zero block.

    As in PyTorch, there is no gradient. Computed on the CPU by LAPACK's sytrf and hetrf, also for a matrix on a GPU.
    """
    _require_ldl(A, "torch.linalg.ldl_factor_ex")
    factors = [t.to(A.device) for t in _ops.ldl_factored(A.detach().cpu(), hermitian)]
    _refuse_gradient("linalg_ldl_factor_ex", factors[0], A)
    if check_errors and bool(factors[2].any()):
        raise RuntimeError("torch.linalg.ldl_factor_ex: D has a zero block, so the factorization is singular")
    return results.LDLFactorEx(*factors)


def ldl_factor(A: Tensor, *, hermitian: bool = False) -> results.LDLFactor:
    """L and the block diagonal D in one matrix, and the pivots; an error if D has a zero block."""
    return results.LDLFactor(*ldl_factor_ex(A, hermitian=hermitian, check_errors=True)[:2])


def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """X with A X = B, from ldl_factor(A). As in PyTorch, there is no gradient."""
    name = "torch.linalg.ldl_solve"
    _require_ldl(LD, name)
    results.require_matrix(B, name)
    if LD.dtype is not B.dtype:
        raise RuntimeError(f"{name}: Expected B and LD to have the same dtype, but found {B.dtype} and {LD.dtype}")
    if LD.shape[:-1] != pivots.shape:
        raise RuntimeError(
            f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape {list(pivots.shape)} instead"
        )
    if pivots.dtype.is_floating_point or pivots.dtype.is_complex or pivots.dtype is _C.bool:
        raise RuntimeError(f"{name}: Expected pivots to be integers. Got {pivots.dtype}")
    if LD.shape[-1] != B.shape[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for {name}: each A matrix is {LD.shape[-1]} by {LD.shape[-1]} but each b matrix is "
            f"{B.shape[-2]} by {B.shape[-1]}"
        )
    batch = _torch.empty(LD.shape[:-2], device="meta").add(_torch.empty(B.shape[:-2], device="meta")).shape
    factors = LD.expand(*batch, *LD.shape[-2:]), pivots.to(_C.int32).expand(*batch, pivots.shape[-1])
    arguments = [t.detach().cpu() for t in (*factors, B.expand(*batch, *B.shape[-2:]))]
    solution = _ops.ldl_solved(*arguments, hermitian).to(B.device)
    _refuse_gradient("linalg_ldl_solve", solution, LD, B)
    return solution
