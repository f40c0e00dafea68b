"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math

from .. import _C
from . import constraints
from .discrete import _ProbsOrLogits
from .exp_family import ExponentialFamily
from .utils import clamp_probs, lazy_property, logits_to_probs

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(_ProbsOrLogits, ExponentialFamily):
    """The density C(p) p^x (1 - p)^(1 - x) on [0, 1] (Loaiza-Ganem and Cunningham 2019).

    The formulas divide by 0 at p = 0.5. Within `lims`, Taylor series replace them.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, probs=None, logits=None, lims=(0.499, 0.501), validate_args=None):
        self._lims = lims
        self._set_one(probs, logits, validate_args)
        if probs is not None:
            self.probs = clamp_probs(self.probs)  # after the check of the given values

    @lazy_property
    def probs(self):
        """The parameter p."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _is_stable(self):
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _stable_probs(self):
        """probs, or a constant where the Taylor series apply."""
        return _C.torch.where(self._is_stable(), self.probs, self._lims[0])

    def _cont_bern_log_norm(self):
        """log C(p)."""
        p, x = self._stable_probs(), (self.probs - 0.5) ** 2
        exact = (((-p).log1p() - p.log()) / (1 - 2 * p)).log()
        return _C.torch.where(self._is_stable(), exact, math.log(2.0) + (4 / 3 + 104 / 45 * x) * x)

    @property
    def mean(self):
        p, x = self._stable_probs(), self.probs - 0.5
        exact = p / (2 * p - 1) + 1 / ((-p).log1p() - p.log())
        return _C.torch.where(self._is_stable(), exact, 0.5 + (1 / 3 + 16 / 45 * x**2) * x)

    @property
    def variance(self):
        p, x = self._stable_probs(), (self.probs - 0.5) ** 2
        exact = p * (p - 1) / (1 - 2 * p) ** 2 + 1 / ((-p).log1p() - p.log()) ** 2
        return _C.torch.where(self._is_stable(), exact, 1 / 12 - (1 / 15 - 128 / 945 * x) * x)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        return self.icdf(_C.torch.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value):
        self._validate_sample(value)
        return value * self.logits - _C.functional.softplus(self.logits) + self._cont_bern_log_norm()

    def cdf(self, value):
        self._validate_sample(value)
        p = self._stable_probs()
        exact = (p**value * (1 - p) ** (1 - value) + p - 1) / (2 * p - 1)
        inside = _C.torch.where(self._is_stable(), exact, value)
        return _C.torch.where(value <= 0, 0.0, _C.torch.where(value >= 1, 1.0, inside))

    def icdf(self, value):
        p = self._stable_probs()
        exact = ((value * (2 * p - 1) - p).log1p() - (-p).log1p()) / (p.log() - (-p).log1p())
        return _C.torch.where(self._is_stable(), exact, value)

    def entropy(self):
        log0, log1 = (-self.probs).log1p(), self.probs.log()
        return self.mean * (log0 - log1) - self._cont_bern_log_norm() - log0

    _natural_params = property(lambda self: (self.logits,))

    def _log_normalizer(self, x):
        low, high = (limit - 0.5 for limit in self._lims)
        stable = (x <= low) | (x > high)
        y = _C.torch.where(stable, x, low)
        exact = y.expm1().abs().log() - y.abs().log()
        return _C.torch.where(stable, exact, 0.5 * x + x**2 / 24 - x**4 / 2880)
