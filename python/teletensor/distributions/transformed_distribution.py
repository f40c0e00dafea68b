"""Distributions of transformed samples."""

from __future__ import annotations

from .._C import Size
from .._grad_mode import no_grad
from . import constraints
from ._validation import one_read
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import _sum_rightmost

__all__ = ["TransformedDistribution"]


def _broadcast_base(base: Distribution, transform: ComposeTransform) -> Distribution:
    """The base distribution in the shape that the transforms require: their parameters' batch, their domain's events."""
    event_dim, shape = len(base.event_shape), Size((*base.batch_shape, *base.event_shape))
    if len(shape) < transform.domain.event_dim:
        raise ValueError(
            f"base_distribution needs to have shape with size at least {transform.domain.event_dim}, but got {shape}."
        )
    wanted = tuple(transform.inverse_shape(transform.forward_shape(shape)))
    if wanted != tuple(shape):
        base = base.expand(wanted[: len(wanted) - event_dim])
    missing = transform.domain.event_dim - event_dim
    return Independent(base, missing) if missing > 0 else base


class TransformedDistribution(Distribution):
    """The distribution of t(x), where x follows the base distribution and t is the composition of the transforms."""

    arg_constraints: dict = {}

    def __init__(self, base_distribution, transforms, validate_args=None):
        self.transforms = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(self.transforms, list) or not all(isinstance(t, Transform) for t in self.transforms):
            raise ValueError(f"transforms must be a Transform or a list of Transforms, but was {transforms}")
        composed = ComposeTransform(self.transforms)
        event_dim = len(base_distribution.event_shape)
        self.base_dist = _broadcast_base(base_distribution, composed)
        shape = tuple(composed.forward_shape(Size((*self.base_dist.batch_shape, *self.base_dist.event_shape))))
        # Events have the dimensions that the transforms or the base distribution operate on jointly.
        domain, codomain = composed.domain.event_dim, composed.codomain.event_dim
        split = len(shape) - max(codomain, event_dim + codomain - domain)
        super().__init__(shape[:split], shape[split:], validate_args=validate_args)

    has_rsample = property(lambda self: self.base_dist.has_rsample)

    @constraints.dependent_property(is_discrete=False)
    def support(self):
        """The codomain of the last transform."""
        if not self.transforms:
            return self.base_dist.support
        codomain = self.transforms[-1].codomain
        extra = len(self.event_shape) - codomain.event_dim
        return constraints.independent(codomain, extra) if extra > 0 else codomain

    def expand(self, batch_shape, _instance=None):
        new = self._copy_for(TransformedDistribution, _instance)
        shape = Size((*batch_shape, *self.event_shape))
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        new.transforms = self.transforms
        new._set_shapes(batch_shape, self.event_shape, self._validate_args)
        return new

    def _transform(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape=()):
        with no_grad():
            return self._transform(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape=()):
        return self._transform(self.base_dist.rsample(sample_shape))

    @one_read
    def log_prob(self, value):
        self._validate_sample(value)
        total, y, event_dim = 0.0, value, len(self.event_shape)
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            term = transform.log_abs_det_jacobian(x, y)
            total = total - _sum_rightmost(term, event_dim - transform.domain.event_dim)
            y = x
        return total + _sum_rightmost(self.base_dist.log_prob(y), event_dim - len(self.base_dist.event_shape))

    def _monotonize(self, value):
        """value, or 1 - value if the transforms reverse the order."""
        sign = ComposeTransform(self.transforms).sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    @one_read
    def cdf(self, value):
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        self.base_dist._validate_sample(value)
        return self._monotonize(self.base_dist.cdf(value))

    def icdf(self, value):
        return self._transform(self.base_dist.icdf(self._monotonize(value)))
