"""The gamma distribution and distributions derived from it."""

from __future__ import annotations

import contextlib
import math

from .. import _C
from .._functions import finfo
from .._grad_mode import no_grad
from .._lazy import set_module
from ..special import gammainc
from . import constraints
from ._gamma_sampling import standard_gamma
from .distribution import _Elementwise
from .exp_family import ExponentialFamily
from .utils import _standard_normal, broadcast_all

__all__ = ["Gamma"]


class Gamma(_Elementwise, ExponentialFamily):
    """The gamma distribution, with a concentration and a rate."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration, rate, validate_args=None):
        self._set(validate_args, concentration=concentration, rate=rate)

    mean = property(lambda self: self.concentration / self.rate)
    mode = property(lambda self: ((self.concentration - 1) / self.rate).clamp_min(0))
    variance = property(lambda self: self.concentration / self.rate**2)

    def sample(self, sample_shape=(), *, generator=None):
        with no_grad():
            return self.rsample(sample_shape, generator)

    def rsample(self, sample_shape=(), generator=None):
        with contextlib.nullcontext() if generator is None else generator:
            drawn = standard_gamma(self.concentration, self._extended_shape(sample_shape)) / self.rate
        # Numbers that round to 0 have no finite log_prob.
        return drawn.clamp_min(finfo(drawn.dtype).tiny)

    def log_prob(self, value):
        self._validate_sample(value)
        a, b = self.concentration, self.rate
        return _C.torch.xlogy(a, b) + _C.torch.xlogy(a - 1, value) - b * value - a.lgamma()

    def entropy(self):
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1 - a) * a.digamma()

    def cdf(self, value):
        self._validate_sample(value)
        return gammainc(self.concentration, self.rate * value)

    _natural_params = property(lambda self: (self.concentration - 1, -self.rate))

    def _log_normalizer(self, x, y):
        return (x + 1).lgamma() - (x + 1) * (-y).log()


class Chi2(Gamma):
    """The chi-squared distribution: the sum of squares of df standard normal variables."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df, validate_args=None):
        self._arguments = {"df": df}
        self._set(validate_args, concentration=0.5 * df, rate=0.5)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._copy_for(Chi2, _instance))

    df = property(lambda self: self.concentration * 2)


class Dirichlet(ExponentialFamily):
    """The Dirichlet distribution, over points of a simplex."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration, validate_args=None):
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    mean = property(lambda self: self.concentration / self.concentration.sum(-1, True))

    @property
    def mode(self):
        """The point of greatest density. If all concentrations are below 1, the corner of the simplex of the largest
        one.
        """
        excess = (self.concentration - 1).clamp_min(0)
        inside = excess / excess.sum(-1, True)
        corner = _C.ops.one_hot(inside.argmax(-1), self.event_shape[-1]).to(inside.dtype)
        return _C.torch.where((self.concentration < 1).all(-1, True), corner, inside)

    @property
    def variance(self):
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total**2 * (total + 1))

    def expand(self, batch_shape, _instance=None):
        new = self._copy_for(Dirichlet, _instance)
        new.concentration = self.concentration.expand(*batch_shape, *self.event_shape)
        new._set_shapes(batch_shape, self.event_shape, self._validate_args)
        return new

    def rsample(self, sample_shape=()):
        parts = standard_gamma(self.concentration, self._extended_shape(sample_shape))
        return parts / parts.sum(-1, True)

    def log_prob(self, value):
        self._validate_sample(value)
        a = self.concentration
        return _C.torch.xlogy(a - 1, value).sum(-1) + a.sum(-1).lgamma() - a.lgamma().sum(-1)

    def entropy(self):
        a, k = self.concentration, self.concentration.shape[-1]
        total = a.sum(-1)
        return a.lgamma().sum(-1) - total.lgamma() - (k - total) * total.digamma() - ((a - 1) * a.digamma()).sum(-1)


    _natural_params = property(lambda self: (self.concentration,))

    def _log_normalizer(self, x):
        return x.lgamma().sum(-1) - x.sum(-1).lgamma()


class Beta(ExponentialFamily):
    """The beta distribution on (0, 1), with two concentrations."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1, concentration0, validate_args=None):
        self._arguments = {"concentration1": concentration1, "concentration0": concentration0}
        both = _C.torch.stack(list(broadcast_all(concentration1, concentration0)), -1)
        self._dirichlet = Dirichlet(both, validate_args=False)
        super().__init__(both.shape[:-1], validate_args=validate_args)

    concentration1 = property(lambda self: self._dirichlet.concentration[..., 0])
    concentration0 = property(lambda self: self._dirichlet.concentration[..., 1])
    mean = property(lambda self: self.concentration1 / (self.concentration1 + self.concentration0))
    mode = property(lambda self: self._dirichlet.mode[..., 0])

    @property
    def variance(self):
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total**2 * (total + 1))

    def expand(self, batch_shape, _instance=None):
        new = self._copy_for(Beta, _instance)
        new._dirichlet = self._dirichlet.expand(batch_shape)
        new._set_shapes(batch_shape, validate_args=self._validate_args)
        return new

    def rsample(self, sample_shape=()):
        return self._dirichlet.rsample(sample_shape)[..., 0]

    def log_prob(self, value):
        self._validate_sample(value)
        return self._dirichlet.log_prob(_C.torch.stack([value, 1 - value], -1))

    def entropy(self):
        return self._dirichlet.entropy()

    _natural_params = property(lambda self: (self.concentration1, self.concentration0))

    def _log_normalizer(self, x, y):
        return x.lgamma() + y.lgamma() - (x + y).lgamma()


class StudentT(_Elementwise):
    """Student's t-distribution: loc + scale z / sqrt(c / df), where z is standard normal and c is chi-squared."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df, loc=0.0, scale=1.0, validate_args=None):
        self._set(validate_args, df=df, loc=loc, scale=scale)

    mean = property(lambda self: _C.torch.where(self.df > 1, self.loc, math.nan))
    mode = property(lambda self: self.loc)

    @property
    def variance(self):
        large = self.scale**2 * self.df / (self.df - 2)
        return _C.torch.where(self.df > 2, large, _C.torch.where(self.df > 1, math.inf, math.nan).to(self.df.dtype))

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        squares = 2 * standard_gamma(self.df / 2, shape)
        return self.loc + self.scale * _standard_normal(shape, self.df.dtype, self.df.device) * (self.df / squares).sqrt()

    def log_prob(self, value):
        self._validate_sample(value)
        y, n = (value - self.loc) / self.scale, self.df
        norm = self.scale.log() + 0.5 * n.log() + 0.5 * math.log(math.pi) + (n / 2).lgamma() - ((n + 1) / 2).lgamma()
        return -0.5 * (n + 1) * (y**2 / n).log1p() - norm

    def entropy(self):
        n = self.df
        beta = (n / 2).lgamma() + math.lgamma(0.5) - ((n + 1) / 2).lgamma()
        return self.scale.log() + 0.5 * (n + 1) * (((n + 1) / 2).digamma() - (n / 2).digamma()) + 0.5 * n.log() + beta


set_module("teletensor.distributions.beta", Beta)
set_module("teletensor.distributions.chi2", Chi2)
set_module("teletensor.distributions.dirichlet", Dirichlet)
set_module("teletensor.distributions.studentT", StudentT)
