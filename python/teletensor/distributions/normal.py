"""Normal and half-normal distributions."""

from __future__ import annotations

import math

from .. import _C
from .._lazy import set_module
from . import constraints
from .distribution import _Elementwise, _LocationScale
from .exp_family import ExponentialFamily
from .utils import _standard_normal

__all__ = ["Normal"]


class Normal(_LocationScale, ExponentialFamily):
    """The normal distribution, with mean loc and standard deviation scale."""

    mean = property(lambda self: self.loc)
    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.scale**2)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        return self.loc + _standard_normal(shape, self.loc.dtype, self.loc.device) * self.scale

    def log_prob(self, value):
        self._validate_sample(value)
        return -((value - self.loc) ** 2) / (2 * self.variance) - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value):
        self._validate_sample(value)
        return 0.5 * (1 + ((value - self.loc) / (self.scale * math.sqrt(2))).erf())

    def icdf(self, value):
        return self.loc + self.scale * (2 * value - 1).erfinv() * math.sqrt(2)

    def entropy(self):
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()


    _mean_carrier_measure = 0
    _natural_params = property(lambda self: (self.loc / self.variance, -0.5 / self.variance))

    def _log_normalizer(self, x, y):
        return -0.25 * x**2 / y + 0.5 * (-math.pi / y).log()


class HalfNormal(_Elementwise):
    """The half-normal distribution: absolute value of a normal variable with mean 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale, validate_args=None):
        self._set(validate_args, scale=scale)

    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi))
    mode = property(lambda self: _C.torch.zeros_like(self.scale))
    variance = property(lambda self: self.scale**2 * (1 - 2 / math.pi))

    def rsample(self, sample_shape=()):
        return (_standard_normal(self._extended_shape(sample_shape), self.scale.dtype, self.scale.device) * self.scale).abs()

    def log_prob(self, value):
        self._validate_sample(value)
        logs = -(value**2) / (2 * self.variance / (1 - 2 / math.pi)) - self.scale.log() - 0.5 * math.log(math.pi / 2)
        return _C.torch.where(value >= 0, logs, -math.inf)

    def cdf(self, value):
        self._validate_sample(value)
        return (value / (self.scale * math.sqrt(2))).erf()

    def icdf(self, prob):
        return self.scale * prob.erfinv() * math.sqrt(2)

    def entropy(self):
        return 0.5 * math.log(math.pi / 2) + 0.5 + self.scale.log()


set_module("teletensor.distributions.half_normal", HalfNormal)
