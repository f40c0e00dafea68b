"""Log-normal distributions."""

from __future__ import annotations

from . import constraints
from ._validation import one_read
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    """exp of a normal variable with mean loc and standard deviation scale."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    @one_read
    def __init__(self, loc, scale, validate_args=None):
        self._arguments = {"loc": loc, "scale": scale}
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._copy_for(LogNormal, _instance))

    loc = property(lambda self: self.base_dist.loc)
    scale = property(lambda self: self.base_dist.scale)
    mean = property(lambda self: (self.loc + self.scale**2 / 2).exp())
    mode = property(lambda self: (self.loc - self.scale**2).exp())
    variance = property(lambda self: (self.scale**2).expm1() * (2 * self.loc + self.scale**2).exp())

    def entropy(self):
        return self.base_dist.entropy() + self.loc
