"""torch's aliases of torch.linalg's functions: torch.inverse, torch.svd, Tensor.cholesky, ..."""

from __future__ import annotations

import warnings

from .. import linalg
from .._C import Tensor
from ..linalg._eigen import pinverse
from ..linalg._eigen import torch_svd as svd
from ..linalg._factors import (
    cholesky_inverse,
    cholesky_solve,
    geqrf,
    logdet,
    lu_unpack,
    ormqr,
    triangular_solve,
)  # fmt: skip
from ..linalg._factors import (
    inv as inverse,
)
from ..linalg._products import chain_matmul
from .out_variant import out_variants

__all__ = [
    "chain_matmul", "cholesky", "cholesky_inverse", "cholesky_solve", "cross", "det", "geqrf", "inverse", "logdet", "lu",
    "lu_solve", "lu_unpack", "matrix_power", "orgqr", "ormqr", "pinverse", "qr", "slogdet", "svd", "triangular_solve",
]  # fmt: skip

det, slogdet, matrix_power = linalg.det, linalg.slogdet, linalg.matrix_power


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


_lu_into = out_variants({"lu": _lu}, ("lu",))["lu"]


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
            "cholesky", "cholesky_inverse", "cholesky_solve", "geqrf", "inverse", "lu_solve", "lu_unpack", "orgqr", "ormqr",
            "pinverse", "qr", "svd", "triangular_solve",
        ),
        ("cross",),
    )
)  # fmt: skip
for _name in __all__:
    if _name not in ("chain_matmul", "lu_unpack"):
        setattr(Tensor, _name, globals()[_name])
