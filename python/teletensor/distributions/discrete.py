"""Discrete distributions."""

from __future__ import annotations

import math

from .. import _C
from .._lazy import set_module
from . import constraints
from ._validation import Check, require
from .distribution import _Elementwise
from .exp_family import ExponentialFamily
from .utils import lazy_property, logits_to_probs, probs_to_logits

__all__ = ["Bernoulli", "Binomial", "Geometric", "NegativeBinomial", "Poisson"]


class _ProbsOrLogits(_Elementwise):
    """A distribution with a probability parameter, given directly or as log odds."""

    def _set_one(self, probs, logits, validate_args, **others) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        given = {"logits": logits} if probs is None else {"probs": probs}
        self._given = next(iter(given))
        self._set(validate_args, **others, **given)

    @lazy_property
    def logits(self):
        """The log odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self):
        """The probability."""
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def _param(self):
        return self.__dict__[self._given]

    param_shape = property(lambda self: self._param.shape)


class Bernoulli(_ProbsOrLogits, ExponentialFamily):
    """A variable that is 1 with a given probability, otherwise 0."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._set_one(probs, logits, validate_args)

    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))
    mode = property(lambda self: _C.torch.where(self.probs == 0.5, math.nan, (self.probs > 0.5).to(self.probs.dtype)))

    def sample(self, sample_shape=()):
        return self.probs.detach().expand(self._extended_shape(sample_shape)).contiguous().bernoulli()

    def log_prob(self, value):
        self._validate_sample(value)
        return value * self.logits - _C.functional.softplus(self.logits)

    def entropy(self):
        return _C.functional.softplus(self.logits) - self.probs * self.logits

    def enumerate_support(self, expand: bool = True):
        values = _C.torch.arange(2, device=self._param.device).to(self._param.dtype)
        values = values.reshape(-1, *[1] * len(self.batch_shape))
        return values.expand(-1, *self.batch_shape) if expand else values


    _mean_carrier_measure = 0
    _natural_params = property(lambda self: (self.logits,))

    def _log_normalizer(self, x):
        return _C.functional.softplus(x)


class Geometric(_ProbsOrLogits):
    """The number of failures before the first success."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._set_one(probs, logits, validate_args)
        if self._validate_args and probs is not None and not (type(probs) is float and probs > 1e-37):
            require([Check(None, self.probs > 0, self._message_of_zeros)])

    def _message_of_zeros(self):
        return (
            f"Expected parameter probs (Tensor of shape {tuple(self.probs.shape)}) of distribution {type(self).__name__} to be positive "
            f"but found invalid values:\n{self.probs}"
        )

    mean = property(lambda self: 1 / self.probs - 1)
    mode = property(lambda self: _C.torch.zeros_like(self.probs))
    variance = property(lambda self: (1 / self.probs - 1) / self.probs)

    def sample(self, sample_shape=()):
        probs = self.probs.detach()
        return (self._uniform(sample_shape, probs).log() / (-probs).log1p()).floor()

    def log_prob(self, value):
        self._validate_sample(value)
        return _C.torch.xlogy(value, 1 - self.probs) + self.probs.log()

    def entropy(self):
        return (_C.functional.softplus(self.logits) - self.probs * self.logits) / self.probs


class Binomial(_ProbsOrLogits):
    """The number of successes in total_count trials."""

    arg_constraints = {
        "total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval, "logits": constraints.real,
    }  # fmt: skip

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        self._set_one(probs, logits, validate_args, total_count=total_count)
        self.total_count = self.total_count.to(self._param.dtype)

    support = constraints.dependent_property(
        lambda self: constraints.integer_interval(0, self.total_count), is_discrete=True, event_dim=0
    )
    mean = property(lambda self: self.total_count * self.probs)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))
    has_enumerate_support = True

    @property
    def mode(self):
        """The most probable number of successes."""
        return _C.torch.minimum(((self.total_count + 1) * self.probs).floor(), self.total_count)

    def _common_count(self, method: str) -> int:
        """The number of trials, if it is the same for all distributions. Waits for the engine."""
        least, most = float(self.total_count.min()), int(self.total_count.max())
        if least != most:
            raise NotImplementedError(
                f"Inhomogeneous total count not supported by `{method}`: expected equal integers, got {least:g} to "
                f"{float(self.total_count.max()):g}."
            )
        return most

    def enumerate_support(self, expand: bool = True):
        count = self._common_count("enumerate_support")
        values = _C.torch.arange(count + 1, device=self._param.device).to(self._param.dtype)
        values = values.reshape(-1, *[1] * len(self.batch_shape))
        return values.expand(-1, *self.batch_shape) if expand else values

    def entropy(self):
        self._common_count("entropy")
        logs = self.log_prob(self.enumerate_support(False))
        return -(logs.exp() * logs).sum(0)

    def sample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        return _C.torch.binomial(self.total_count.expand(shape).contiguous(), self.probs.detach().expand(shape).contiguous())

    def log_prob(self, value):
        self._validate_sample(value)
        n = self.total_count
        ways = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        return ways + value * self.logits - n * _C.functional.softplus(self.logits)


class NegativeBinomial(_ProbsOrLogits):
    """The number of successes before total_count failures."""

    arg_constraints = {
        "total_count": constraints.nonnegative, "probs": constraints.half_open_interval(0.0, 1.0), "logits": constraints.real,
    }  # fmt: skip
    support = constraints.nonnegative_integer

    def __init__(self, total_count, probs=None, logits=None, validate_args=None):
        self._set_one(probs, logits, validate_args, total_count=total_count)
        self.total_count = self.total_count.to(self._param.dtype)

    mean = property(lambda self: self.total_count * self.logits.exp())
    mode = property(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp_min(0))
    variance = property(lambda self: self.mean / (-self.logits).sigmoid())

    def sample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        rates = _C.ops.standard_gamma(self.total_count.expand(shape).contiguous()) * self.logits.detach().exp()
        return _C.torch.poisson(rates)

    def log_prob(self, value):
        self._validate_sample(value)
        n, log = self.total_count, _C.functional.logsigmoid
        ways = (n + value).lgamma() - (value + 1).lgamma() - n.lgamma()
        return n * log(-self.logits) + value * log(self.logits) + _C.torch.where(n + value == 0, 0.0, ways)


class Poisson(_Elementwise, ExponentialFamily):
    """The number of events per unit of time, at a rate."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate, validate_args=None):
        self._set(validate_args, rate=rate)

    mean = property(lambda self: self.rate)
    mode = property(lambda self: self.rate.floor())
    variance = property(lambda self: self.rate)

    def sample(self, sample_shape=()):
        return _C.torch.poisson(self.rate.detach().expand(self._extended_shape(sample_shape)).contiguous())

    def log_prob(self, value):
        self._validate_sample(value)
        return _C.torch.xlogy(value, self.rate) - self.rate - (value + 1).lgamma()

    _natural_params = property(lambda self: (self.rate.log(),))

    def _log_normalizer(self, x):
        return x.exp()


set_module("teletensor.distributions.bernoulli", Bernoulli)
set_module("teletensor.distributions.binomial", Binomial)
set_module("teletensor.distributions.geometric", Geometric)
set_module("teletensor.distributions.negative_binomial", NegativeBinomial)
set_module("teletensor.distributions.poisson", Poisson)
