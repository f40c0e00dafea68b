"""Relaxations of Bernoulli variables to (0, 1)."""

from __future__ import annotations

from .. import _C
from .._functions import as_tensor
from . import constraints
from ._validation import one_read
from .discrete import _ProbsOrLogits
from .transformed_distribution import TransformedDistribution
from .transforms import SigmoidTransform
from .utils import clamp_probs

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(_ProbsOrLogits):
    """The log odds of a RelaxedBernoulli variable: a logistic variable with location logits, over the temperature."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self._set_one(probs, logits, validate_args)
        self.temperature = temperature

    def expand(self, batch_shape, _instance=None):
        # The temperature is not a parameter with the batch's shape.
        new = self._copy_for(LogitRelaxedBernoulli, _instance)
        new.temperature, new._given = self.temperature, self._given
        setattr(new, self._given, self._param.expand(batch_shape))
        new._set_shapes(batch_shape, validate_args=self._validate_args)
        return new

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        uniform = clamp_probs(_C.torch.rand(shape, dtype=probs.dtype, device=probs.device))
        return (uniform.log() - (-uniform).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value):
        self._validate_sample(value)
        temperature = as_tensor(self.temperature, dtype=self._param.dtype, device=self._param.device)
        diff = self.logits - value * temperature
        return temperature.log() + diff - 2 * _C.functional.softplus(diff)


class RelaxedBernoulli(TransformedDistribution):
    """A relaxation of a Bernoulli variable to (0, 1) with gradients (Maddison et al., "The concrete distribution")."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    @one_read
    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._copy_for(RelaxedBernoulli, _instance))

    temperature = property(lambda self: self.base_dist.temperature)
    logits = property(lambda self: self.base_dist.logits)
    probs = property(lambda self: self.base_dist.probs)
