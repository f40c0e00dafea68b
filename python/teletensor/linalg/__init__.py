"""torch.linalg: factorisations, solutions and norms of matrices, batched over leading dimensions.

If a matrix has no solution or factorisation, the call raises LinAlgError: it waits for its status, except in captures.
"""

from __future__ import annotations

from .._C import LinAlgError
from .._overridable import overridable as _overridable
from .._overridable import wrap_functions as _wrap_functions
from ._eigen import eig, eigh, eigvals, eigvalsh, lstsq, matrix_rank, pinv, svd, svdvals
from ._factors import (
    cholesky, cholesky_ex, det, householder_product, inv, inv_ex, ldl_factor, ldl_factor_ex, ldl_solve, lu,
    lu_factor, lu_factor_ex, lu_solve, qr, slogdet,
    solve, solve_ex, solve_triangular,
)  # fmt: skip
from ._norms import cond, matrix_norm, norm, vector_norm
from ._products import (
    cross, diagonal, matmul, matrix_exp, matrix_power, multi_dot, tensorinv, tensorsolve, vander, vecdot,
)  # fmt: skip
from .._lazy import lazy_attributes as _lazy_attributes
from .._ops.out_variant import out_variant, out_variants

globals().update(
    out_variants(
        globals(),
        (
            "cond", "eig", "eigvals", "householder_product", "lstsq", "matrix_power", "matrix_rank", "pinv", "tensorinv", "tensorsolve",
        ),
        exact=(
            "cholesky", "cholesky_ex", "cross", "det", "eigh", "eigvalsh", "inv", "inv_ex", "ldl_factor", "ldl_factor_ex", "ldl_solve",
            "lu", "lu_factor", "lu_factor_ex", "lu_solve", "matrix_norm", "multi_dot", "norm", "qr", "slogdet", "solve", "solve_ex",
            "solve_triangular", "svd", "svdvals", "vecdot", "vector_norm",
        ),
    )
)  # fmt: skip

__all__ = [  # noqa: F822 - some are imported at their first use
    "LinAlgError", "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh",
    "householder_product", "inv", "inv_ex", "ldl_factor", "ldl_factor_ex", "ldl_solve", "lstsq", "lu", "lu_factor",
    "lu_factor_ex", "lu_solve", "matmul",
    "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank", "matrix_sqrth", "multi_dot", "norm", "pinv", "polar", "qr",
    "slogdet", "solve", "solve_ex", "solve_triangular", "svd", "svdvals", "tensorinv", "tensorsolve", "vander", "vecdot",
    "vector_norm",
]  # fmt: skip

_wrap_functions(globals())
# These need torch.autograd.Function, which a higher layer has.
__getattr__, __dir__ = _lazy_attributes(
    globals(), (), {"_roots": "matrix_sqrth polar"}, convert=lambda module, name, value: _overridable(module, name, out_variant(value))
)
