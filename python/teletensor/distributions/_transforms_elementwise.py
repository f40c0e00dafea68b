"""Transforms of single elements."""

from __future__ import annotations

import math
import numbers

from .. import _C
from .._functions import broadcast_shapes, finfo
from .._lazy import set_module
from . import constraints
from ._transform_types import Transform
from .utils import _sum_rightmost, broadcast_all, lazy_property


class _FunctionTransform(Transform):
    """A transform without parameters. Two of the same type are equal."""

    domain = constraints.real

    def __eq__(self, other) -> bool:
        return type(other) is type(self)


class ExpTransform(_FunctionTransform):
    """y = exp(x)."""

    bijective, sign, codomain = True, 1, constraints.positive

    def _call(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def log_abs_det_jacobian(self, x, y):
        return x


def clipped_sigmoid(x):
    """The sigmoid, clamped to [tiny, 1 - eps]."""
    limits = finfo(x.dtype)
    return x.sigmoid().clamp(min=limits.tiny, max=1.0 - limits.eps)


class SigmoidTransform(_FunctionTransform):
    """y = 1 / (1 + exp(-x)), clamped to [tiny, 1 - eps]."""

    bijective, sign, codomain = True, 1, constraints.unit_interval

    def _call(self, x):
        return clipped_sigmoid(x)

    def _inverse(self, y):
        limits = finfo(y.dtype)
        y = y.clamp(min=limits.tiny, max=1.0 - limits.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x, y):
        return -_C.functional.softplus(-x) - _C.functional.softplus(x)


class TanhTransform(_FunctionTransform):
    """y = tanh(x). Use cache_size=1 if y may round to 1 or -1, whose inverses are infinite."""

    bijective, sign, codomain = True, 1, constraints.interval(-1.0, 1.0)

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        return y.atanh()

    def log_abs_det_jacobian(self, x, y):
        return 2.0 * (math.log(2.0) - x - _C.functional.softplus(-2.0 * x))


class SoftplusTransform(_FunctionTransform):
    """y = log(1 + exp(x))."""

    bijective, sign, codomain = True, 1, constraints.positive

    def _call(self, x):
        return _C.functional.softplus(x)

    def _inverse(self, y):
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x, y):
        return -_C.functional.softplus(-x)


class AbsTransform(_FunctionTransform):
    """y = |x|. The inverse returns the non-negative x."""

    codomain = constraints.positive

    def _call(self, x):
        return x.abs()

    def _inverse(self, y):
        return y


class PowerTransform(Transform):
    """y = x ** exponent."""

    bijective, domain, codomain = True, constraints.positive, constraints.positive

    def __init__(self, exponent, cache_size: int = 0):
        super().__init__(cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def with_cache(self, cache_size: int = 1):
        return self if self._cache_size == cache_size else PowerTransform(self.exponent, cache_size)

    @lazy_property
    def sign(self):
        """The sign of the exponent."""
        return self.exponent.sign()

    def __eq__(self, other) -> bool:
        return isinstance(other, PowerTransform) and bool((self.exponent == other.exponent).all())

    def _call(self, x):
        return x**self.exponent

    def _inverse(self, y):
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x, y):
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape):
        return broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape


def _same(a, b) -> bool:
    if isinstance(a, numbers.Number) and isinstance(b, numbers.Number):
        return a == b
    return bool((a == b).all())


class AffineTransform(Transform):
    """y = loc + scale x."""

    bijective = True

    def __init__(self, loc, scale, event_dim: int = 0, cache_size: int = 0):
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    event_dim = property(lambda self: self._event_dim)

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        """All numbers, in events of event_dim dimensions."""
        return constraints.independent(constraints.real, self.event_dim) if self.event_dim else constraints.real

    codomain = constraints.dependent_property(lambda self: self.domain, is_discrete=False)

    def with_cache(self, cache_size: int = 1):
        return self if self._cache_size == cache_size else AffineTransform(self.loc, self.scale, self.event_dim, cache_size)

    def __eq__(self, other) -> bool:
        return isinstance(other, AffineTransform) and _same(self.loc, other.loc) and _same(self.scale, other.scale)

    @property
    def sign(self):
        """The sign of the scale."""
        return self.scale.sign() if isinstance(self.scale, _C.Tensor) else int(self.scale > 0) - int(self.scale < 0)

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        if isinstance(self.scale, _C.Tensor):
            logs = self.scale.abs().log().expand(broadcast_shapes(self.scale.shape, x.shape))
        else:
            logs = _C.torch.full_like(x, math.log(abs(self.scale)))
        return _sum_rightmost(logs, self.event_dim)

    def forward_shape(self, shape):
        return broadcast_shapes(shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    inverse_shape = forward_shape


class CumulativeDistributionTransform(Transform):
    """y = the distribution's cdf(x)."""

    bijective, sign, codomain = True, 1, constraints.unit_interval

    def __init__(self, distribution, cache_size: int = 0):
        super().__init__(cache_size)
        self.distribution = distribution

    domain = property(lambda self: self.distribution.support)

    def with_cache(self, cache_size: int = 1):
        return self if self._cache_size == cache_size else CumulativeDistributionTransform(self.distribution, cache_size)

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y):
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x, y):
        return self.distribution.log_prob(x)


set_module(
    "teletensor.distributions.transforms",
    AbsTransform, AffineTransform, CumulativeDistributionTransform, ExpTransform, PowerTransform, SigmoidTransform,
    SoftplusTransform, TanhTransform,
)  # fmt: skip
