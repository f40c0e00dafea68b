"""Constraints that consist of other constraints: of the parts of a tensor, and of a mixture's components."""

from __future__ import annotations

from .. import _C
from .._lazy import set_module
from ._constraint_types import Constraint, check_is_constraint


class MixtureSameFamilyConstraint(Constraint):
    """The support of a mixture: values in the support of all components."""

    def __init__(self, base_constraint):
        check_is_constraint(base_constraint, "base_constraint")
        self.base_constraint = base_constraint

    is_discrete = property(lambda self: self.base_constraint.is_discrete)
    event_dim = property(lambda self: self.base_constraint.event_dim)

    def check(self, value):
        if value.dim() < self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        valid = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        kept = value.dim() - self.event_dim
        return valid.reshape(*valid.shape[:kept], -1).all(-1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r})"


class _Joined(Constraint):
    def __init__(self, cseq, dim: int):
        self.cseq, self.dim = list(cseq), dim
        for constraint in self.cseq:
            check_is_constraint(constraint, "each element of cseq")

    is_discrete = property(lambda self: any(c.is_discrete for c in self.cseq))

    def _check_dim(self, value) -> None:
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(f"dim {self.dim} out of range for value with {value.dim()} dimensions")


class _Cat(_Joined):
    """Applies each constraint to a part of the value along `dim`, of the given length; see torch.cat."""

    def __init__(self, cseq, dim: int = 0, lengths=None):
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})")

    event_dim = property(lambda self: max(c.event_dim for c in self.cseq))

    def check(self, value):
        self._check_dim(value)
        valid, start = [], 0
        for constraint, length in zip(self.cseq, self.lengths):
            valid.append(constraint.check(value.narrow(self.dim, start, length)))
            start += length
        return _C.torch.cat(valid, self.dim)


class _Stack(_Joined):
    """Applies each constraint to an entry of the value along `dim`; see torch.stack."""

    def __init__(self, cseq, dim: int = 0):
        super().__init__(cseq, dim)

    @property
    def event_dim(self) -> int:
        """The largest event_dim of the constraints, plus one if the stacked dimension is one of the event's."""
        largest = max(c.event_dim for c in self.cseq)
        return largest + 1 if self.dim + largest < 0 else largest

    def check(self, value):
        self._check_dim(value)
        entries = [value.select(self.dim, i) for i in range(value.shape[self.dim])]
        return _C.torch.stack([c.check(v) for c, v in zip(self.cseq, entries)], self.dim)


set_module("teletensor.distributions.constraints", MixtureSameFamilyConstraint, _Cat, _Stack)
