"""Mixtures of distributions of one type."""

from __future__ import annotations

from .. import _C
from .._functions import broadcast_shapes
from .._grad_mode import no_grad
from . import constraints
from ._validation import one_read
from .categorical import Categorical
from .distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A sample of one of the components, which are the last batch dimension of the component distribution."""

    arg_constraints: dict = {}

    def __init__(self, mixture_distribution, component_distribution, validate_args=None):
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                "The Mixture distribution needs to be an instance of torch.distributions.Categorical, got "
                f"{type(mixture_distribution).__name__}"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution needs to be an instance of torch.distributions.Distribution, got "
                f"{type(component_distribution).__name__}"
            )
        if not component_distribution.batch_shape:
            raise ValueError("expected the components in the last batch dimension of component_distribution, got none")
        self._set_parts(mixture_distribution, component_distribution)
        batch_shape, count = component_distribution.batch_shape[:-1], component_distribution.batch_shape[-1]
        try:
            broadcast_shapes(mixture_distribution.batch_shape, batch_shape)
        except RuntimeError:
            raise ValueError(
                f"`mixture_distribution.batch_shape` ({mixture_distribution.batch_shape}) is not compatible with "
                f"`component_distribution.batch_shape`({batch_shape})"
            ) from None
        if self._num_component != count:
            raise ValueError(
                f"`mixture_distribution component` ({self._num_component}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({count})"
            )
        super().__init__(batch_shape, component_distribution.event_shape, validate_args=validate_args)

    def _set_parts(self, mixture, component) -> None:
        self._mixture_distribution, self._component_distribution = mixture, component
        self._num_component, self._event_ndims = mixture.param_shape[-1], len(component.event_shape)

    def expand(self, batch_shape, _instance=None):
        new = self._copy_for(MixtureSameFamily, _instance)
        component = self.component_distribution.expand((*batch_shape, self._num_component))
        new._set_parts(self.mixture_distribution.expand(batch_shape), component)
        new._set_shapes(batch_shape, self.event_shape, self._validate_args)
        return new

    mixture_distribution = property(lambda self: self._mixture_distribution)
    component_distribution = property(lambda self: self._component_distribution)

    @constraints.dependent_property
    def support(self):
        """The values in the support of every component."""
        return constraints.MixtureSameFamilyConstraint(self.component_distribution.support)

    def _weights(self):
        """The components' probabilities, in the shape of a component's mean."""
        probs = self.mixture_distribution.probs
        probs = probs.expand(*self.batch_shape, self._num_component)
        return probs.reshape(*probs.shape, *[1] * self._event_ndims)

    def _pad(self, value):
        """The value with a dimension for the components."""
        return value.unsqueeze(-1 - self._event_ndims)

    @property
    def mean(self):
        return (self._weights() * self.component_distribution.mean).sum(-1 - self._event_ndims)

    @property
    def variance(self):
        """The mean of the components' variances and the variance of their means."""
        component = self.component_distribution
        spread = component.variance + (component.mean - self._pad(self.mean)).square()
        return (self._weights() * spread).sum(-1 - self._event_ndims)

    @one_read
    def cdf(self, x):
        return (self.component_distribution.cdf(self._pad(x)) * self.mixture_distribution.probs).sum(-1)

    @one_read
    def log_prob(self, x):
        self._validate_sample(x)
        logs = self.component_distribution.log_prob(self._pad(x))
        return (logs + self.mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def sample(self, sample_shape=()):
        with no_grad():
            chosen = self.mixture_distribution.expand(self.batch_shape).sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            dim = len(sample_shape) + len(self.batch_shape)
            index = chosen.reshape(*chosen.shape, *[1] * (self._event_ndims + 1))
            index = index.expand(*chosen.shape, 1, *self.event_shape)
            return _C.torch.gather(drawn, dim, index).squeeze(dim)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
