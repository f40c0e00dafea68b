"""Invertible functions with log-determinants of their Jacobians."""

from __future__ import annotations

import math

from .. import _C
from . import constraints
from .utils import _sum_rightmost

__all__ = [
    "AbsTransform", "AffineTransform", "ComposeTransform", "ExpTransform", "PowerTransform", "SigmoidTransform",
    "SoftmaxTransform", "SoftplusTransform", "TanhTransform", "Transform", "identity_transform",
]  # fmt: skip


class Transform:
    """A function y = t(x) with inverse x = t.inv(y) and log |dy/dx|.

    `event_dim` is the number of trailing dimensions that the function transforms jointly.
    """

    bijective = False
    domain: constraints.Constraint = constraints.real
    codomain: constraints.Constraint = constraints.real
    event_dim = 0
    sign = 1

    def __init__(self, cache_size: int = 0):
        self._cache_size, self._last = cache_size, (None, None)

    @property
    def inv(self) -> Transform:
        """The inverse transform."""
        return _Inverse(self)

    def __call__(self, x):
        if self._cache_size and x is self._last[0]:
            return self._last[1]
        y = self._call(x)
        if self._cache_size:
            self._last = (x, y)
        return y

    def _inv_call(self, y):
        if self._cache_size and y is self._last[1]:
            return self._last[0]
        x = self._inverse(y)
        if self._cache_size:
            self._last = (x, y)
        return x

    def _call(self, x):
        raise NotImplementedError

    def _inverse(self, y):
        raise NotImplementedError

    def log_abs_det_jacobian(self, x, y):
        """log |dy/dx| for y = t(x)."""
        raise NotImplementedError

    def forward_shape(self, shape):
        """The shape of y, given the shape of x."""
        return tuple(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _Inverse(Transform):
    def __init__(self, transform: Transform):
        super().__init__()
        self._of = transform
        self.domain, self.codomain, self.event_dim = transform.codomain, transform.domain, transform.event_dim
        self.bijective, self.sign = transform.bijective, transform.sign

    @property
    def inv(self) -> Transform:
        return self._of

    def __call__(self, x):
        return self._of._inv_call(x)

    def _inv_call(self, y):
        return self._of(y)

    def log_abs_det_jacobian(self, x, y):
        return -self._of.log_abs_det_jacobian(y, x)


class ComposeTransform(Transform):
    """The composition of transforms, applied in order."""

    def __init__(self, parts, cache_size: int = 0):
        super().__init__(cache_size)
        self.parts = list(parts)
        self.event_dim = max((p.event_dim for p in self.parts), default=0)
        self.bijective = all(p.bijective for p in self.parts)
        self.domain = self.parts[0].domain if self.parts else constraints.real
        self.codomain = self.parts[-1].codomain if self.parts else constraints.real
        self.sign = math.prod(p.sign for p in self.parts)

    def _call(self, x):
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y):
        for part in reversed(self.parts):
            y = part._inv_call(y)
        return y

    def log_abs_det_jacobian(self, x, y):
        total = 0.0
        for part in self.parts:
            then = part(x)
            total = total + _sum_rightmost(part.log_abs_det_jacobian(x, then), self.event_dim - part.event_dim)
            x = then
        return total if self.parts else _C.torch.zeros_like(x)


identity_transform = ComposeTransform([])


class AffineTransform(Transform):
    """y = loc + scale x."""

    bijective = True

    def __init__(self, loc, scale, event_dim: int = 0, cache_size: int = 0):
        super().__init__(cache_size)
        self.loc, self.scale, self.event_dim = loc, scale, event_dim

    @property
    def sign(self):
        """The sign of the derivative."""
        return self.scale.sign() if isinstance(self.scale, _C.Tensor) else int(self.scale > 0) - int(self.scale < 0)

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        if isinstance(self.scale, _C.Tensor):
            logs = self.scale.abs().log() + _C.torch.zeros_like(x)
        else:
            logs = _C.torch.full_like(x, math.log(abs(self.scale)))
        return _sum_rightmost(logs, self.event_dim)


class ExpTransform(Transform):
    """y = exp(x)."""

    bijective, codomain = True, constraints.positive

    def _call(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def log_abs_det_jacobian(self, x, y):
        return x


class PowerTransform(Transform):
    """y = x ** exponent."""

    bijective, domain, codomain = True, constraints.positive, constraints.positive

    def __init__(self, exponent, cache_size: int = 0):
        super().__init__(cache_size)
        self.exponent = exponent

    def _call(self, x):
        return x**self.exponent

    def _inverse(self, y):
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x, y):
        return (self.exponent * y / x).abs().log()


class SigmoidTransform(Transform):
    """y = 1 / (1 + exp(-x))."""

    bijective, codomain = True, constraints.unit_interval

    def _call(self, x):
        return x.sigmoid()

    def _inverse(self, y):
        y = y.clamp(min=2.0**-126, max=1 - 2.0**-24)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x, y):
        return -_C.functional.softplus(-x) - _C.functional.softplus(x)


class TanhTransform(Transform):
    """y = tanh(x)."""

    bijective, codomain = True, constraints.interval(-1.0, 1.0)

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        return y.atanh()

    def log_abs_det_jacobian(self, x, y):
        return 2.0 * (math.log(2.0) - x - _C.functional.softplus(-2.0 * x))


class SoftplusTransform(Transform):
    """y = log(1 + exp(x))."""

    bijective, codomain = True, constraints.positive

    def _call(self, x):
        return _C.functional.softplus(x)

    def _inverse(self, y):
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x, y):
        return -_C.functional.softplus(-x)


class AbsTransform(Transform):
    """y = |x|. The inverse returns the non-negative x."""

    codomain = constraints.positive

    def _call(self, x):
        return x.abs()

    def _inverse(self, y):
        return y


class SoftmaxTransform(Transform):
    """y = softmax(x) over the last dimension."""

    codomain, event_dim = constraints.simplex, 1

    def _call(self, x):
        return x.softmax(-1)

    def _inverse(self, y):
        return y.log()
