"""Relaxations of one-hot vectors to points of the simplex."""

from __future__ import annotations

import math

from .. import _C
from .._functions import as_tensor
from . import constraints
from ._validation import one_read
from .categorical import Categorical
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform
from .utils import clamp_probs

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(Distribution):
    """The logarithms of a RelaxedOneHotCategorical variable."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector  # a superset: the exponentials' sum is 1
    has_rsample = True

    @one_read
    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self._categorical, self.temperature = Categorical(probs, logits, validate_args=validate_args), temperature
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._copy_for(ExpRelaxedCategorical, _instance)
        new._categorical, new.temperature = self._categorical.expand(batch_shape), self.temperature
        new._set_shapes(batch_shape, self.event_shape, self._validate_args)
        return new

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    param_shape = property(lambda self: self._categorical.param_shape)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        uniforms = clamp_probs(_C.torch.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        return ((self.logits - (-uniforms.log()).log()) / self.temperature).log_softmax(-1)

    def log_prob(self, value):
        self._validate_sample(value)
        k = self.event_shape[-1]
        temperature = as_tensor(self.temperature, dtype=self.logits.dtype, device=self.logits.device)
        score = (self.logits - value * temperature).log_softmax(-1).sum(-1)
        return score + math.lgamma(k) + (k - 1) * temperature.log()


class RelaxedOneHotCategorical(TransformedDistribution):
    """A relaxation of one-hot vectors to points of the simplex (Maddison et al., "The concrete distribution", 2016)."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True

    @one_read
    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._copy_for(RelaxedOneHotCategorical, _instance))

    temperature = property(lambda self: self.base_dist.temperature)
    logits = property(lambda self: self.base_dist.logits)
    probs = property(lambda self: self.base_dist.probs)
