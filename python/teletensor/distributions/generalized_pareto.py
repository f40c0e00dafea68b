"""Generalized Pareto distributions."""

from __future__ import annotations

import math

from .. import _C
from . import constraints
from .distribution import _Elementwise

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(_Elementwise):
    """The limit distribution of the values above a high threshold `loc`. Exponential if the concentration is 0."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc, scale, concentration, validate_args=None):
        self._set(validate_args, loc=loc, scale=scale, concentration=concentration)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        """Values from loc, up to a limit if the concentration is negative."""
        end = _C.torch.where(self.concentration < 0, self.loc - self.scale / self.concentration, math.inf)
        return constraints.interval(self.loc, end)

    mode = property(lambda self: self.loc)

    @property
    def mean(self):
        c = self.concentration
        return _C.torch.where(c < 1, self.loc + self.scale / (1 - _C.torch.where(c < 1, c, 0.5)), math.nan)

    @property
    def variance(self):
        defined = self.concentration < 0.5
        c = _C.torch.where(defined, self.concentration, 0.25)
        return _C.torch.where(defined, self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c)), math.nan)

    def _is_exponential(self):
        return _C.torch.isclose(self.concentration, _C.torch.zeros_like(self.concentration))

    def _safe_concentration(self):
        """The concentration, or 1 where it is not used, so that its gradient is finite."""
        return _C.torch.where(self._is_exponential(), 1.0, self.concentration)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        return self.icdf(_C.torch.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value):
        self._validate_sample(value)
        z, c = (value - self.loc) / self.scale, self._safe_concentration()
        factor = 1 / c + 1
        # With concentration -1 the distribution is uniform, also at its end, where the logarithm is infinite.
        power = _C.torch.where(factor == 0, factor, factor * (c * z).log1p())
        return -self.scale.log() - _C.torch.where(self._is_exponential(), z, power)

    def log_survival_function(self, value):
        """log(1 - cdf(value))."""
        self._validate_sample(value)
        z, c = (value - self.loc) / self.scale, self._safe_concentration()
        return _C.torch.where(self._is_exponential(), -z, -(c * z).log1p() / c)

    def log_cdf(self, value):
        """log(cdf(value))."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value):
        return self.log_cdf(value).exp()

    def icdf(self, value):
        log_survival, c = (-value).log1p(), self._safe_concentration()
        power = self.loc + self.scale / c * (-c * log_survival).expm1()
        return _C.torch.where(self._is_exponential(), self.loc - self.scale * log_survival, power)

    def entropy(self):
        return self.scale.log() + self.concentration + 1
