"""Continuous distributions of scalars. Samples are drawn by inverse transform sampling."""

from __future__ import annotations

import math

from .. import _C
from .._lazy import set_module
from . import constraints
from .distribution import _Elementwise, _LocationScale
from .exp_family import ExponentialFamily
from .utils import euler_constant

__all__ = ["Cauchy", "Exponential", "Gumbel", "Laplace", "Pareto", "Weibull"]


class Exponential(_Elementwise, ExponentialFamily):
    """The exponential distribution: time between events that occur at a rate."""

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate, validate_args=None):
        self._set(validate_args, rate=rate)

    mean = property(lambda self: 1 / self.rate)
    stddev = property(lambda self: 1 / self.rate)
    variance = property(lambda self: self.rate**-2)
    mode = property(lambda self: _C.torch.zeros_like(self.rate))

    def rsample(self, sample_shape=()):
        return -(-self._uniform(sample_shape, self.rate)).log1p() / self.rate

    def log_prob(self, value):
        self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value):
        self._validate_sample(value)
        return -(-self.rate * value).expm1()

    def icdf(self, value):
        return -(-value).log1p() / self.rate

    def entropy(self):
        return 1 - self.rate.log()

    _mean_carrier_measure = 0
    _natural_params = property(lambda self: (-self.rate,))

    def _log_normalizer(self, x):
        return -(-x).log()


class Laplace(_LocationScale):
    """The Laplace (double exponential) distribution."""

    mean = property(lambda self: self.loc)
    variance = property(lambda self: 2 * self.scale**2)
    stddev = property(lambda self: math.sqrt(2) * self.scale)

    def log_prob(self, value):
        self._validate_sample(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value):
        self._validate_sample(value)
        return 0.5 - 0.5 * (value - self.loc).sign() * (-(value - self.loc).abs() / self.scale).expm1()

    def icdf(self, value):
        term = value - 0.5
        return self.loc - self.scale * term.sign() * (-2 * term.abs()).log1p()

    def entropy(self):
        return 1 + (2 * self.scale).log()


class Cauchy(_LocationScale):
    """The Cauchy distribution, with median `loc` and half width `scale`. Its mean is undefined."""

    mean = property(lambda self: _C.torch.full_like(self.loc, math.nan))
    variance = property(lambda self: _C.torch.full_like(self.loc, math.inf))

    def log_prob(self, value):
        self._validate_sample(value)
        return -math.log(math.pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    def cdf(self, value):
        self._validate_sample(value)
        return ((value - self.loc) / self.scale).atan() / math.pi + 0.5

    def icdf(self, value):
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self):
        return math.log(4 * math.pi) + self.scale.log()


class Gumbel(_LocationScale):
    """The Gumbel distribution: limit distribution of the maximum of many samples."""

    mean = property(lambda self: self.loc + self.scale * euler_constant)
    variance = property(lambda self: (math.pi**2 / 6) * self.scale**2)
    stddev = property(lambda self: (math.pi / math.sqrt(6)) * self.scale)

    def log_prob(self, value):
        self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    def cdf(self, value):
        self._validate_sample(value)
        below = (-((self.loc - value) / self.scale).exp()).exp()
        return _C.torch.where(self.scale < 0, 1 - below, below)

    def icdf(self, value):
        value = _C.torch.where(self.scale < 0, 1 - value, value)
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self):
        return self.scale.log() + (1 + euler_constant)


class Pareto(_Elementwise):
    """The Pareto distribution: scale times a power of a uniform variable."""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}
    has_rsample = True

    def __init__(self, scale, alpha, validate_args=None):
        self._set(validate_args, scale=scale, alpha=alpha)

    support = constraints.dependent_property(
        lambda self: constraints.greater_than_eq(self.scale), is_discrete=False, event_dim=0
    )
    mode = property(lambda self: self.scale)

    @property
    def mean(self):
        return _C.torch.where(self.alpha > 1, self.alpha * self.scale / (self.alpha - 1), math.inf)

    @property
    def variance(self):
        a = self.alpha
        return _C.torch.where(a > 2, self.scale**2 * a / ((a - 1) ** 2 * (a - 2)), math.inf)

    def rsample(self, sample_shape=()):
        return self.scale * self._uniform(sample_shape, self.scale) ** (-1 / self.alpha)

    def log_prob(self, value):
        self._validate_sample(value)
        return self.alpha.log() - (self.alpha + 1) * (value / self.scale).log() - self.scale.abs().log()

    def cdf(self, value):
        self._validate_sample(value)
        above = (-self.alpha * (value / self.scale).log()).exp()
        return _C.torch.where(self.scale < 0, above, 1 - above)

    def icdf(self, value):
        above = _C.torch.where(self.scale < 0, value, 1 - value)
        return self.scale * above ** (-1 / self.alpha)

    def entropy(self):
        return (self.scale / self.alpha).log() + (1 + 1 / self.alpha)


class Weibull(_Elementwise):
    """The Weibull distribution: scale times a power of an exponential variable."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, scale, concentration, validate_args=None):
        self._set(validate_args, scale=scale, concentration=concentration)

    mean = property(lambda self: self.scale * (1 + 1 / self.concentration).lgamma().exp())
    mode = property(lambda self: self.scale * ((self.concentration - 1) / self.concentration) ** (1 / self.concentration))

    @property
    def variance(self):
        first, second = ((1 + n / self.concentration).lgamma() for n in (1, 2))
        return self.scale**2 * (second.exp() - (2 * first).exp())

    def rsample(self, sample_shape=()):
        return self.icdf(self._uniform(sample_shape, self.scale))

    def log_prob(self, value):
        self._validate_sample(value)
        k, ratio = self.concentration, value / self.scale
        return (k / self.scale).abs().log() + (k - 1) * ratio.abs().log() - ratio**k

    def cdf(self, value):
        self._validate_sample(value)
        below = -(-((value / self.scale) ** self.concentration)).expm1()
        return _C.torch.where(self.scale < 0, 1 - below, below)

    def icdf(self, value):
        value = _C.torch.where(self.scale < 0, 1 - value, value)
        return self.scale * (-(-value).log1p()) ** (1 / self.concentration)

    def entropy(self):
        return euler_constant * (1 - 1 / self.concentration) + (self.scale / self.concentration).log() + 1


set_module("teletensor.distributions.cauchy", Cauchy)
set_module("teletensor.distributions.exponential", Exponential)
set_module("teletensor.distributions.gumbel", Gumbel)
set_module("teletensor.distributions.laplace", Laplace)
set_module("teletensor.distributions.pareto", Pareto)
set_module("teletensor.distributions.weibull", Weibull)
