"""Constraints on parameters and samples."""

from __future__ import annotations

import functools

from .. import _C
from .._C import Tensor
from ..linalg import cholesky_ex


class Constraint:
    """A predicate for every element, or for every vector or matrix of the last event_dim dimensions."""

    is_discrete = False
    event_dim = 0

    def check(self, value: Tensor) -> Tensor:
        """Returns a bool for each element of the value, or for each vector or matrix if event_dim is 1 or 2."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return type(self).__name__.strip("_") + "()"


class _FunctionConstraint(Constraint):
    """A constraint defined by a function."""

    def __init__(self, name: str, check, is_discrete: bool = False, event_dim: int = 0):
        self.name, self._check, self.is_discrete, self.event_dim = name, check, is_discrete, event_dim

    def check(self, value: Tensor) -> Tensor:
        return self._check(value)

    def __repr__(self) -> str:
        return self.name


class _Dependent(Constraint):
    """A constraint that depends on the distribution's parameters."""

    def __init__(self, is_discrete: bool = False, event_dim: int = 0):
        self.is_discrete, self.event_dim = is_discrete, event_dim


class dependent_property(property, _Dependent):  # noqa: N801 - PyTorch's name
    """A property of a distribution that returns a constraint."""

    def __init__(self, fn=None, *, is_discrete: bool = False, event_dim: int = 0):
        super().__init__(fn)
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, fn):
        return dependent_property(fn, is_discrete=self.is_discrete, event_dim=self.event_dim)


def interval(low, high) -> Constraint:
    """The interval [low, high]."""
    return _FunctionConstraint(f"Interval({low}, {high})", lambda v: (v >= low) & (v <= high))


def half_open_interval(low, high) -> Constraint:
    """The interval [low, high)."""
    return _FunctionConstraint(f"HalfOpenInterval({low}, {high})", lambda v: (v >= low) & (v < high))


def integer_interval(low, high) -> Constraint:
    """The integers in [low, high]."""
    return _FunctionConstraint(
        f"IntegerInterval({low}, {high})", lambda v: (v % 1 == 0) & (v >= low) & (v <= high), True
    )


def greater_than(low) -> Constraint:
    """Values greater than low."""
    return _FunctionConstraint(f"GreaterThan({low})", lambda v: v > low)


def greater_than_eq(low) -> Constraint:
    """Values greater than or equal to low."""
    return _FunctionConstraint(f"GreaterThanEq({low})", lambda v: v >= low)


def less_than(high) -> Constraint:
    """Values less than high."""
    return _FunctionConstraint(f"LessThan({high})", lambda v: v < high)


def independent(base: Constraint, count: int) -> Constraint:
    """Requires base for all elements of the last `count` dimensions."""
    return _FunctionConstraint(
        f"IndependentConstraint({base}, {count})",
        lambda v: functools.reduce(lambda ok, _: ok.all(-1), range(count), base.check(v)),
        base.is_discrete, base.event_dim + count,
    )  # fmt: skip


def _is_cholesky(v: Tensor) -> Tensor:
    lower = (v.tril() == v).flatten(-2).all(-1)
    return lower & (v.diagonal(0, -2, -1) > 0).all(-1)


def _is_positive_definite(v: Tensor) -> Tensor:
    if v.shape[-2] != v.shape[-1]:
        return _C.torch.full(v.shape[:-2], False, dtype=_C.bool)
    symmetric = _C.torch.isclose(v, v.mT, atol=1e-6).flatten(-2).all(-1)
    return symmetric & (cholesky_ex(v).info == 0)


dependent = _Dependent()
real = _FunctionConstraint("Real()", lambda v: v == v)
real_vector = independent(real, 1)
boolean = _FunctionConstraint("Boolean()", lambda v: (v == 0) | (v == 1), True)
positive = greater_than(0.0)
nonnegative = greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
positive_integer = _FunctionConstraint("PositiveInteger()", lambda v: (v % 1 == 0) & (v >= 1), True)
nonnegative_integer = _FunctionConstraint("NonnegativeInteger()", lambda v: (v % 1 == 0) & (v >= 0), True)
simplex = _FunctionConstraint("Simplex()", lambda v: (v >= 0).all(-1) & ((v.sum(-1) - 1).abs() < 1e-6), False, 1)
one_hot = _FunctionConstraint("OneHot()", lambda v: ((v == 0) | (v == 1)).all(-1) & (v.sum(-1) == 1), True, 1)
lower_cholesky = _FunctionConstraint("LowerCholesky()", _is_cholesky, False, 2)
lower_triangular = _FunctionConstraint("LowerTriangular()", lambda v: (v.tril() == v).flatten(-2).all(-1), False, 2)
square = _FunctionConstraint(
    "Square()", lambda v: _C.torch.full(v.shape[:-2], v.shape[-2] == v.shape[-1], dtype=_C.bool), False, 2
)
positive_definite = _FunctionConstraint("PositiveDefinite()", _is_positive_definite, False, 2)


def is_dependent(constraint) -> bool:
    """Whether the constraint depends on the parameters."""
    return isinstance(constraint, _Dependent)
