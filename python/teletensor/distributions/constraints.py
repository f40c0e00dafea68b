"""Constraints on parameters and samples."""

from __future__ import annotations

from ._constraint_joins import MixtureSameFamilyConstraint, _Cat, _Stack
from ._constraint_types import (
    Constraint,
    _Dependent,
    _DependentProperty,
    _GreaterThan,
    _GreaterThanEq,
    _HalfOpenInterval,
    _IndependentConstraint,
    _IntegerGreaterThan,
    _IntegerInterval,
    _Interval,
    _LessThan,
    _Real,
    is_dependent,
)  # fmt: skip
from ._constraint_vectors import (
    _Boolean,
    _CorrCholesky,
    _LowerCholesky,
    _LowerTriangular,
    _Multinomial,
    _OneHot,
    _PositiveDefinite,
    _PositiveSemidefinite,
    _Simplex,
    _Square,
    _Symmetric,
)  # fmt: skip

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property",
    "greater_than", "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval", "is_dependent",
    "less_than", "lower_cholesky", "lower_triangular", "multinomial", "nonnegative", "nonnegative_integer", "one_hot",
    "positive", "positive_definite", "positive_integer", "positive_semidefinite", "real", "real_vector", "simplex",
    "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip

# Constraints with parameters are classes; the others are instances.
cat = _Cat
dependent_property = _DependentProperty
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
half_open_interval = _HalfOpenInterval
independent = _IndependentConstraint
integer_interval = _IntegerInterval
interval = _Interval
less_than = _LessThan
multinomial = _Multinomial
stack = _Stack

boolean = _Boolean()
corr_cholesky = _CorrCholesky()
dependent = _Dependent()
lower_cholesky = _LowerCholesky()
lower_triangular = _LowerTriangular()
nonnegative = _GreaterThanEq(0.0)
nonnegative_integer = _IntegerGreaterThan(0)
one_hot = _OneHot()
positive = _GreaterThan(0.0)
positive_definite = _PositiveDefinite()
positive_integer = _IntegerGreaterThan(1)
positive_semidefinite = _PositiveSemidefinite()
real = _Real()
real_vector = _IndependentConstraint(real, 1)
simplex = _Simplex()
square = _Square()
symmetric = _Symmetric()
unit_interval = _Interval(0.0, 1.0)
