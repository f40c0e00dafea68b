"""Constraints on vectors and matrices, and on booleans."""

from __future__ import annotations

from .. import _C
from .._functions import finfo
from .._lazy import set_module
from ..linalg import cholesky_ex, eigvalsh
from ._constraint_types import Constraint


class _Boolean(Constraint):
    """0 and 1."""

    is_discrete = True

    def check(self, value):
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    """Vectors with one element 1 and all others 0."""

    is_discrete, event_dim = True, 1

    def check(self, value):
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Multinomial(Constraint):
    """Non-negative vectors whose sum is at most upper_bound."""

    is_discrete, event_dim = True, 1

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound

    def check(self, x):
        return (x >= 0).all(-1) & (x.sum(-1) <= self.upper_bound)

    def __repr__(self) -> str:
        return "Multinomial()"


class _Simplex(Constraint):
    """Non-negative vectors whose sum is 1."""

    event_dim = 1

    def check(self, value):
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _LowerTriangular(Constraint):
    """Matrices whose elements above the diagonal are 0."""

    event_dim = 2

    def check(self, value):
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(_LowerTriangular):
    """Lower triangular matrices with a positive diagonal."""

    def check(self, value):
        return super().check(value) & (value.diagonal(0, -2, -1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    """Lower triangular matrices with a positive diagonal and rows of norm 1."""

    def check(self, value):
        # The rounding error of a row's norm grows with its length.
        tolerance = finfo(value.dtype).eps * value.shape[-1] * 10
        norms = value.detach().square().sum(-1).sqrt()
        return ((norms - 1).abs() < tolerance).all(-1) & super().check(value)


class _Square(Constraint):
    """Square matrices."""

    event_dim = 2

    def check(self, value):
        return _C.torch.full(value.shape[:-2], value.shape[-2] == value.shape[-1], dtype=_C.bool, device=value.device)


class _Symmetric(_Square):
    """Symmetric matrices."""

    def check(self, value):
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        return _C.torch.isclose(value, value.mT, atol=1e-6).flatten(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    """Symmetric matrices without negative eigenvalues."""

    def check(self, value):
        valid = super().check(value)
        return valid if value.shape[-2] != value.shape[-1] else valid & (eigvalsh(value) >= 0).all(-1)


class _PositiveDefinite(_Symmetric):
    """Symmetric matrices with positive eigenvalues."""

    def check(self, value):
        valid = super().check(value)
        return valid if value.shape[-2] != value.shape[-1] else valid & (cholesky_ex(value).info == 0)


set_module("teletensor.distributions.constraints", _Multinomial)
