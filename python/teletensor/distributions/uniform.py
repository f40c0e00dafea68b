"""Uniform distributions."""

from __future__ import annotations

import math

from .. import _C
from . import constraints
from ._validation import Check, require
from .distribution import _Elementwise

__all__ = ["Uniform"]


class Uniform(_Elementwise):
    """The uniform distribution on [low, high)."""

    arg_constraints = {
        "low": constraints.dependent(is_discrete=False, event_dim=0),
        "high": constraints.dependent(is_discrete=False, event_dim=0),
    }
    has_rsample = True

    def __init__(self, low, high, validate_args=None):
        self._set(validate_args, low=low, high=high)
        known = type(low) is type(high) is float and self.low.dtype in (_C.float32, _C.float64)
        if self._validate_args and not (known and low + max(1e-6 * abs(low), 1e-37) < high):
            require([Check(None, self.low < self.high, lambda: "Uniform is not defined when low>= high")])

    support = constraints.dependent_property(
        lambda self: constraints.interval(self.low, self.high), is_discrete=False, event_dim=0
    )
    mean = property(lambda self: (self.high + self.low) / 2)
    mode = property(lambda self: math.nan * self.high)
    stddev = property(lambda self: (self.high - self.low) / math.sqrt(12))
    variance = property(lambda self: (self.high - self.low) ** 2 / 12)

    def rsample(self, sample_shape=()):
        return self.low + self._uniform(sample_shape, self.low) * (self.high - self.low)

    def log_prob(self, value):
        self._validate_sample(value)
        inside = (value >= self.low) & (value < self.high)
        return inside.to(self.low.dtype).log() - (self.high - self.low).log()

    def cdf(self, value):
        self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value):
        return value * (self.high - self.low) + self.low

    def entropy(self):
        return (self.high - self.low).log()
