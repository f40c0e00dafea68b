"""Distributions of class indices, one-hot vectors and multinomial counts."""

from __future__ import annotations

import math

from .. import _C
from .._functions import broadcast_shapes
from .._lazy import set_module
from . import constraints
from .discrete import Binomial
from .distribution import Distribution
from .utils import lazy_property, logits_to_probs, probs_to_logits

__all__ = ["Categorical"]


class Categorical(Distribution):
    """A class index. The last dimension of `probs` or `logits` contains unnormalised (log) probabilities."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        given = logits if probs is None else probs
        if given.dim() < 1:
            raise ValueError(f"`{'logits' if probs is None else 'probs'}` parameter must be at least one-dimensional.")
        if probs is None:
            self.logits = logits - logits.logsumexp(-1, True)
        else:
            self.probs = probs / probs.sum(-1, True)
        self._num_events = given.shape[-1]
        super().__init__(given.shape[:-1], validate_args=validate_args)

    @lazy_property
    def logits(self):
        """The log probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self):
        """The probabilities."""
        return logits_to_probs(self.logits)

    @property
    def _param(self):
        return self.__dict__.get("logits", self.__dict__.get("probs"))

    @property
    def param_shape(self):
        """The shape of the parameter."""
        return self._param.shape

    support = constraints.dependent_property(
        lambda self: constraints.integer_interval(0, self._num_events - 1), is_discrete=True, event_dim=0
    )
    mode = property(lambda self: self.probs.argmax(-1))
    mean = property(lambda self: _C.torch.full_like(self.probs[..., 0], math.nan))
    variance = property(lambda self: _C.torch.full_like(self.probs[..., 0], math.nan))

    def expand(self, batch_shape, _instance=None):
        new = self._copy_for(Categorical, _instance)
        for name in self.__dict__.keys() & {"probs", "logits"}:
            setattr(new, name, getattr(self, name).expand(*batch_shape, self._num_events))
        new._num_events = self._num_events
        new._set_shapes(batch_shape, validate_args=self._validate_args)
        return new

    def sample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        count = 1
        for n in sample_shape:
            count *= n
        drawn = self.probs.detach().reshape(-1, self._num_events).multinomial(count, True)
        return drawn.transpose(0, 1).reshape(shape)

    def log_prob(self, value):
        self._validate_sample(value)
        value = value.to(_C.int64).unsqueeze(-1)
        shape = _C.torch.empty(value.shape[:-1], device="meta").add(_C.torch.empty(self.batch_shape, device="meta")).shape
        logits = self.logits.expand(*shape, self._num_events)
        return logits.gather(-1, value.expand(*shape, 1)).squeeze(-1)

    def entropy(self):
        logits = self.logits.clamp_min(-3.4028234663852886e38 if self.logits.dtype is not _C.float64 else -1.7e308)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True):
        values = _C.torch.arange(self._num_events, device=self._param.device).reshape(-1, *[1] * len(self.batch_shape))
        return values.expand(-1, *self.batch_shape) if expand else values


class OneHotCategorical(Distribution):
    """A class, represented by a one-hot vector."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits, validate_args=False)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))
    mode = property(lambda self: _C.ops.one_hot(self.probs.argmax(-1), self.event_shape[-1]).to(self.probs.dtype))
    param_shape = property(lambda self: self._categorical.param_shape)

    def expand(self, batch_shape, _instance=None):
        new = self._copy_for(OneHotCategorical, _instance)
        new._categorical = self._categorical.expand(batch_shape)
        new._set_shapes(batch_shape, self.event_shape, self._validate_args)
        return new

    def sample(self, sample_shape=()):
        return _C.ops.one_hot(self._categorical.sample(sample_shape), self._categorical._num_events).to(self.probs.dtype)

    def log_prob(self, value):
        self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self):
        return self._categorical.entropy()


    def enumerate_support(self, expand: bool = True):
        n, batch = self.event_shape[0], self.batch_shape
        values = _C.torch.eye(n, dtype=self.probs.dtype, device=self.probs.device).reshape(n, *[1] * len(batch), n)
        return values.expand(n, *batch, n) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot samples with the gradients of the probabilities (Bengio et al. 2013)."""

    has_rsample = True

    def rsample(self, sample_shape=()):
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(Distribution):
    """The number of occurrences of each class in total_count draws."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, total_count: int = 1, probs=None, logits=None, validate_args=None):
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count, self._categorical = total_count, Categorical(probs, logits, validate_args=False)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    mean = property(lambda self: self.probs * self.total_count)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))
    support = constraints.dependent_property(
        lambda self: constraints.multinomial(self.total_count), is_discrete=True, event_dim=1
    )

    def expand(self, batch_shape, _instance=None):
        new = self._copy_for(Multinomial, _instance)
        new.total_count, new._categorical = self.total_count, self._categorical.expand(batch_shape)
        new._set_shapes(batch_shape, self.event_shape, self._validate_args)
        return new

    def entropy(self):
        """The marginal distribution of each count is binomial, which gives the mean of log(count!)."""
        n = _C.tensor(float(self.total_count), dtype=self.probs.dtype, device=self.probs.device)
        counts = _C.torch.arange(self.total_count + 1, device=self.probs.device).to(self.probs.dtype)
        counts = counts.reshape(-1, *[1] * self.probs.dim())
        weights = Binomial(self.total_count, probs=self.probs, validate_args=False).log_prob(counts).exp()
        means = (weights * (counts + 1).lgamma()).sum((0, -1))
        return n * self._categorical.entropy() - (n + 1).lgamma() + means

    def sample(self, sample_shape=()):
        drawn = self._categorical.sample((self.total_count, *sample_shape))
        counts = _C.torch.zeros(*self._extended_shape(sample_shape), dtype=self.probs.dtype, device=drawn.device)
        indices = drawn.movedim(0, -1)
        return counts.scatter_add(-1, indices, _C.torch.ones(indices.shape, dtype=counts.dtype, device=drawn.device))

    def log_prob(self, value):
        self._validate_sample(value)
        shape = broadcast_shapes(self.logits.shape, value.shape)
        logits, value = self.logits.expand(shape), value.expand(shape)
        ways = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        finite = logits.masked_fill(_C.torch.logical_and(value == 0, logits == -math.inf), 0.0)
        return ways + (finite * value).sum(-1)


set_module("teletensor.distributions.multinomial", Multinomial)
set_module("teletensor.distributions.one_hot_categorical", OneHotCategorical, OneHotCategoricalStraightThrough)
