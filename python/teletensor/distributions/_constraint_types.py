"""The base class of constraints, constraints of single elements, and constraints that depend on parameters."""

from __future__ import annotations

from .._C import Tensor
from .._lazy import set_module


class Constraint:
    """A predicate for every element, or for every vector or matrix of the last event_dim dimensions."""

    is_discrete = False
    event_dim = 0

    def check(self, value: Tensor) -> Tensor:
        """Returns a bool for each element of the value, or for each vector or matrix if event_dim is 1 or 2."""
        raise NotImplementedError

    def __repr__(self) -> str:
        bounds = [f"{n}={getattr(self, n)}" for n in ("lower_bound", "upper_bound") if hasattr(self, n)]
        return f"{type(self).__name__.removeprefix('_')}({', '.join(bounds)})"


def check_is_constraint(value, name: str) -> None:
    """Raises AssertionError, as PyTorch does, if the value is not a Constraint."""
    if not isinstance(value, Constraint):
        raise AssertionError(f"{name} must be a Constraint, got {type(value).__name__}")


class _Dependent(Constraint):
    """A constraint that depends on the distribution's parameters."""

    def __init__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        self._is_discrete, self._event_dim = is_discrete, event_dim

    @property
    def is_discrete(self) -> bool:
        """Whether values are discrete, if this does not depend on the parameters."""
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self) -> int:
        """The number of dimensions of an event, if this does not depend on the parameters."""
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented) -> _Dependent:
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, x):
        raise ValueError("Cannot determine validity of dependent constraint")


class _DependentProperty(property, _Dependent):
    """A property of a distribution that returns a constraint. On the class it is itself a dependent constraint."""

    def __init__(self, fn=None, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        property.__init__(self, fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn):
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def is_dependent(constraint) -> bool:
    """Whether the constraint depends on the parameters."""
    return isinstance(constraint, _Dependent)


class _IndependentConstraint(Constraint):
    """Requires a constraint for all elements of the last dimensions."""

    def __init__(self, base_constraint, reinterpreted_batch_ndims: int):
        check_is_constraint(base_constraint, "base_constraint")
        if not isinstance(reinterpreted_batch_ndims, int) or reinterpreted_batch_ndims < 0:
            raise AssertionError(f"reinterpreted_batch_ndims must be an int >= 0, got {reinterpreted_batch_ndims!r}")
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims

    is_discrete = property(lambda self: self.base_constraint.is_discrete)
    event_dim = property(lambda self: self.base_constraint.event_dim + self.reinterpreted_batch_ndims)

    def check(self, value):
        valid, count = self.base_constraint.check(value), self.reinterpreted_batch_ndims
        if valid.dim() < count:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        for _ in range(count):
            valid = valid.all(-1)
        return valid

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class _Real(Constraint):
    """All numbers, including infinities, but not NaN."""

    def check(self, value):
        return value == value


class _LowerBounded(Constraint):
    def __init__(self, lower_bound):
        self.lower_bound = lower_bound


class _UpperBounded(Constraint):
    def __init__(self, upper_bound):
        self.upper_bound = upper_bound


class _Bounded(Constraint):
    def __init__(self, lower_bound, upper_bound):
        self.lower_bound, self.upper_bound = lower_bound, upper_bound


class _GreaterThan(_LowerBounded):
    """Values greater than lower_bound."""

    def check(self, value):
        return value > self.lower_bound


class _GreaterThanEq(_LowerBounded):
    """Values greater than or equal to lower_bound."""

    def check(self, value):
        return value >= self.lower_bound


class _LessThan(_UpperBounded):
    """Values less than upper_bound."""

    def check(self, value):
        return value < self.upper_bound


class _Interval(_Bounded):
    """The interval [lower_bound, upper_bound]."""

    def check(self, value):
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class _HalfOpenInterval(_Bounded):
    """The interval [lower_bound, upper_bound)."""

    def check(self, value):
        return (value >= self.lower_bound) & (value < self.upper_bound)


class _IntegerInterval(_Bounded):
    """The integers in [lower_bound, upper_bound]."""

    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & (value >= self.lower_bound) & (value <= self.upper_bound)


class _IntegerGreaterThan(_LowerBounded):
    """The integers greater than or equal to lower_bound."""

    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & (value >= self.lower_bound)


set_module(
    "teletensor.distributions.constraints",
    Constraint, _DependentProperty, _GreaterThan, _GreaterThanEq, _HalfOpenInterval, _IndependentConstraint,
    _IntegerInterval, _Interval, _LessThan,
)  # fmt: skip
