"""Distributions of transformed samples."""

from __future__ import annotations

from .._grad_mode import no_grad
from . import constraints
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import _sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of t(x), where x follows the base distribution and t is the composition of the transforms."""

    def __init__(self, base_distribution, transforms, validate_args=None):
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        composed = ComposeTransform(self.transforms)
        # The dimensions that the transforms operate on jointly must belong to one event.
        missing = composed.event_dim - len(base_distribution.event_shape)
        self.base_dist = Independent(base_distribution, missing) if missing > 0 else base_distribution
        shape = tuple(self.base_dist.batch_shape) + tuple(self.base_dist.event_shape)
        self._event_dim = max(composed.event_dim, len(self.base_dist.event_shape))
        split = len(shape) - self._event_dim
        super().__init__(shape[:split], composed.forward_shape(shape)[split:], validate_args=validate_args)

    has_rsample = property(lambda self: self.base_dist.has_rsample)

    @property
    def support(self):
        """The codomain of the last transform."""
        if not self.transforms:
            return self.base_dist.support
        codomain = self.transforms[-1].codomain
        extra = self._event_dim - codomain.event_dim
        return constraints.independent(codomain, extra) if extra > 0 else codomain

    def expand(self, batch_shape, _instance=None):
        return TransformedDistribution(self.base_dist.expand(batch_shape), self.transforms, validate_args=False)

    def sample(self, sample_shape=()):
        with no_grad():
            x = self.base_dist.sample(sample_shape)
            for transform in self.transforms:
                x = transform(x)
            return x

    def rsample(self, sample_shape=()):
        x = self.base_dist.rsample(sample_shape)
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value):
        self._validate_sample(value)
        total, y = 0.0, value
        for transform in reversed(self.transforms):
            x = transform._inv_call(y)
            total = total - _sum_rightmost(transform.log_abs_det_jacobian(x, y), self._event_dim - transform.event_dim)
            y = x
        return total + _sum_rightmost(self.base_dist.log_prob(y), self._event_dim - len(self.base_dist.event_shape))

    def _monotonize(self, value):
        sign = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value):
        for transform in reversed(self.transforms):
            value = transform._inv_call(value)
        return self._monotonize(self.base_dist.cdf(value))

    def icdf(self, value):
        value = self.base_dist.icdf(self._monotonize(value))
        for transform in self.transforms:
            value = transform(value)
        return value
