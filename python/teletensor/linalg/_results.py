"""Helpers of the functions of torch.linalg: named results, broadcasting of batches, and checks."""

from __future__ import annotations

import math
from typing import NamedTuple

from .. import _C
from .._C import Tensor
from .._functions import on_mesh_of
from .._named_results import printed_as

_torch = _C.torch


@printed_as("linalg_cholesky_ex")
class CholeskyEx(NamedTuple):
    L: Tensor
    info: Tensor


@printed_as("linalg_inv_ex")
class InvEx(NamedTuple):
    inverse: Tensor
    info: Tensor


@printed_as("linalg_solve_ex")
class SolveEx(NamedTuple):
    result: Tensor
    info: Tensor


@printed_as("linalg_slogdet")
class Slogdet(NamedTuple):
    sign: Tensor
    logabsdet: Tensor


@printed_as("linalg_qr")
class QR(NamedTuple):
    Q: Tensor
    R: Tensor


@printed_as("linalg_lu")
class LU(NamedTuple):
    P: Tensor
    L: Tensor
    U: Tensor


@printed_as("linalg_lu_factor")
class LUFactor(NamedTuple):
    LU: Tensor
    pivots: Tensor


@printed_as("linalg_lu_factor_ex")
class LUFactorEx(NamedTuple):
    LU: Tensor
    pivots: Tensor
    info: Tensor


@printed_as("linalg_ldl_factor")
class LDLFactor(NamedTuple):
    LD: Tensor
    pivots: Tensor


@printed_as("linalg_ldl_factor_ex")
class LDLFactorEx(NamedTuple):
    LD: Tensor
    pivots: Tensor
    info: Tensor


@printed_as("linalg_eig")
class Eig(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


@printed_as("linalg_eigh")
class Eigh(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


@printed_as("linalg_svd")
class SVD(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor


@printed_as("svd")
class OldSVD(NamedTuple):
    U: Tensor
    S: Tensor
    V: Tensor


@printed_as("slogdet")
class OldSlogdet(NamedTuple):
    sign: Tensor
    logabsdet: Tensor


@printed_as("lu_unpack")
class LUUnpack(NamedTuple):
    P: Tensor
    L: Tensor
    U: Tensor


@printed_as("geqrf")
class Geqrf(NamedTuple):
    a: Tensor
    tau: Tensor


@printed_as("triangular_solve")
class TriangularSolve(NamedTuple):
    solution: Tensor
    cloned_coefficient: Tensor


@printed_as("linalg_lstsq")
class Lstsq(NamedTuple):
    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def eye(rows: int, columns: int, like: Tensor) -> Tensor:
    """Returns ones on the diagonal, of `like`'s dtype and device, and on its mesh."""
    return on_mesh_of(like, _torch.eye(rows, columns, dtype=like.dtype, device=like.device))


def identity(n: int, like: Tensor, batch=()) -> Tensor:
    """Returns a batch of n x n identity matrices, of `like`'s dtype and device, and on its mesh."""
    return eye(n, n, like).expand(*batch, n, n)


def broadcast_batches(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Expands both to their common batch dimensions."""
    if a.shape[:-2] == b.shape[:-2]:
        return a, b
    from .._functions import broadcast_shapes

    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return a.expand(*batch, *a.shape[-2:]), b.expand(*batch, *b.shape[-2:])


def require_square(A: Tensor, name: str) -> None:
    """Raises PyTorch's RuntimeError unless A contains square matrices."""
    require_matrix(A, name)
    if A.shape[-1] != A.shape[-2]:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} matrices"
        )


def require_matrix(A: Tensor, name: str) -> None:
    """Raises PyTorch's RuntimeError unless A has at least 2 dimensions."""
    if A.dim() < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")


def product(sizes) -> int:
    """Returns the number of elements of a tensor with these sizes."""
    return math.prod(sizes)
