"""torch's versions of torch.linalg's functions: torch.inverse, torch.svd, torch.norm, Tensor.cholesky, ..."""

from __future__ import annotations

import warnings

from .. import _C, linalg
from .._C import Tensor
from .._ops.out_variant import exact_out_variant, out_variants
from ._eigen import pinverse
from ._eigen import torch_svd as svd
from ._factors import (
    cholesky_inverse,
    cholesky_solve,
    geqrf,
    logdet,
    lu_unpack,
    ormqr,
    triangular_solve,
)  # fmt: skip
from ._factors import (
    inv as inverse,
)
from ._products import chain_matmul
from ._results import OldSlogdet

__all__ = [
    "chain_matmul", "cholesky", "cholesky_inverse", "cholesky_solve", "cross", "det", "geqrf", "inverse", "logdet", "lu",
    "lu_solve", "lu_unpack", "matrix_power", "norm", "orgqr", "ormqr", "pinverse", "qr", "slogdet", "svd", "triangular_solve",
]  # fmt: skip

det, matrix_power = linalg.det, linalg.matrix_power


def slogdet(input: Tensor) -> OldSlogdet:
    """Same as linalg.slogdet."""
    return OldSlogdet(*linalg.slogdet(input))


def orgqr(input: Tensor, input2: Tensor) -> Tensor:
    """Same as linalg.householder_product."""
    return linalg.householder_product(input, input2)


def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """Same as linalg.cross. Without dim (deprecated), uses the first dimension of size 3."""
    if dim is None:
        warnings.warn(
            "Using torch.cross without specifying the dim arg is deprecated. Please either pass the dim explicitly or simply "
            "use torch.linalg.cross. The default value of dim will change to agree with that of linalg.cross in a future "
            "release.",
            UserWarning,
            stacklevel=3,
        )
        dim = next((i for i, size in enumerate(input.shape) if size == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return linalg.cross(input, other, dim=dim)


def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """Same as linalg.cholesky."""
    return linalg.cholesky(input, upper=upper)


def qr(input: Tensor, some: bool = True) -> tuple[Tensor, Tensor]:
    """linalg.qr in reduced mode or, if `some` is False, in complete mode."""
    return linalg.qr(input, "reduced" if some else "complete")


def _lu(A: Tensor, pivot: bool, get_infos: bool) -> tuple[Tensor, ...]:
    factors = linalg.lu_factor_ex(A, pivot=pivot)
    return factors if get_infos else factors[:2]


_lu_into = exact_out_variant(_lu)


def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out=None) -> tuple[Tensor, ...]:
    """linalg.lu_factor_ex: L and U in one matrix, the pivots and, optionally, the index of the first zero pivot."""
    return _lu_into(A, pivot, get_infos, out=out)


def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """linalg.lu_solve with another order of arguments."""
    return linalg.lu_solve(LU_data, LU_pivots, b)


globals().update(
    out_variants(
        globals(),
        (
            "cholesky", "cholesky_inverse", "cholesky_solve", "geqrf", "orgqr", "ormqr", "pinverse",
        ),
        ("cross", "inverse", "lu_solve", "lu_unpack", "qr", "slogdet", "svd", "triangular_solve"),
    )
)  # fmt: skip
for _name in __all__:
    if _name not in ("chain_matmul", "lu_unpack", "norm"):
        setattr(Tensor, _name, globals()[_name])


def norm(input: Tensor, p="fro", dim=None, keepdim: bool = False, out: Tensor | None = None, dtype=None) -> Tensor:
    """The norm over the given dimensions, by default all."""
    return _norm(input, p, dim, keepdim, dtype, out=out)


@exact_out_variant
def _norm(input: Tensor, p, dim, keepdim: bool, dtype) -> Tensor:
    if dtype is not None and dtype.is_complex != input.is_complex():
        kind = "complex" if input.is_complex() else "real"
        raise RuntimeError(f"linalg.vector_norm: dtype should be {kind} for {kind} inputs, but got {dtype}")
    value = input if dtype is None else input.to(dtype)
    if p == "nuc":
        return linalg.matrix_norm(value, "nuc", (-2, -1) if dim is None else dim, keepdim)
    return _C.torch.norm(value, p, keepdim=keepdim) if dim is None else _C.torch.norm(value, p, dim, keepdim)


def _norm_method(self: Tensor, p="fro", dim=None, keepdim: bool = False, dtype=None) -> Tensor:
    """The norm over the given dimensions, by default all."""
    return norm(self, p, dim, keepdim, None, dtype)


Tensor.norm = _norm_method
