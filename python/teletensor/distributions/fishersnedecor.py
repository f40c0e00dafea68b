"""Fisher-Snedecor distributions."""

from __future__ import annotations

import math

from .. import _C
from .._functions import finfo
from . import constraints
from ._gamma_sampling import standard_gamma
from .distribution import _Elementwise

__all__ = ["FisherSnedecor"]


class FisherSnedecor(_Elementwise):
    """The F-distribution: the quotient of the means of df1 and df2 squared normal variables."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1, df2, validate_args=None):
        self._set(validate_args, df1=df1, df2=df2)

    mean = property(lambda self: _C.torch.where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan))

    @property
    def mode(self):
        inside = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return _C.torch.where(self.df1 > 2, inside, math.nan)

    @property
    def variance(self):
        a, b = self.df1, self.df2
        return _C.torch.where(b > 4, 2 * b**2 * (a + b - 2) / (a * (b - 2) ** 2 * (b - 4)), math.nan)

    def rsample(self, sample_shape=()):
        shape, tiny = self._extended_shape(sample_shape), finfo(self.df1.dtype).tiny
        upper = standard_gamma(self.df1 / 2, shape) / self.df1
        lower = standard_gamma(self.df2 / 2, shape) / self.df2
        return (upper / lower.clamp_min(tiny)).clamp_min(tiny)

    def log_prob(self, value):
        self._validate_sample(value)
        a, b, ratio = self.df1 / 2, self.df2 / 2, self.df1 / self.df2
        log_beta = a.lgamma() + b.lgamma() - (a + b).lgamma()
        return a * ratio.log() + (a - 1) * value.log() - (a + b) * (ratio * value).log1p() - log_beta
