"""Logistic normal distributions."""

from __future__ import annotations

from . import constraints
from ._validation import one_read
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Points of a simplex of n + 1 dimensions: the stick-breaking transform of n normal variables."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    @one_read
    def __init__(self, loc, scale, validate_args=None):
        self._arguments = {"loc": loc, "scale": scale}
        base = Normal(loc, scale, validate_args=validate_args)
        base = base if base.batch_shape else base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._copy_for(LogisticNormal, _instance))

    loc = property(lambda self: self.base_dist.base_dist.loc)
    scale = property(lambda self: self.base_dist.base_dist.scale)
