"""Kumaraswamy distributions."""

from __future__ import annotations

import math

from .. import _C
from . import constraints
from ._validation import one_read
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """The distribution on (0, 1) with the cdf 1 - (1 - x^a)^b, where a is concentration1 and b concentration0."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    @one_read
    def __init__(self, concentration1, concentration0, validate_args=None):
        self._arguments = {"concentration1": concentration1, "concentration0": concentration0}
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        zeros = _C.torch.zeros_like(self.concentration0)
        inverse_cdf = [
            PowerTransform(1 / self.concentration0), AffineTransform(1.0, -1.0), PowerTransform(1 / self.concentration1),
        ]  # fmt: skip
        super().__init__(Uniform(zeros, zeros + 1, validate_args=validate_args), inverse_cdf, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._copy_for(Kumaraswamy, _instance)
        new.concentration1 = self.concentration1.expand(batch_shape)
        new.concentration0 = self.concentration0.expand(batch_shape)
        return super().expand(batch_shape, new)

    def _moment(self, n: int):
        """The mean of x^n: b times the beta function of 1 + n / a and b."""
        a, b = 1 + n / self.concentration1, self.concentration0
        return b * (a.lgamma() + b.lgamma() - (a + b).lgamma()).exp()

    mean = property(lambda self: self._moment(1))
    variance = property(lambda self: self._moment(2) - self.mean**2)

    @property
    def mode(self):
        """PyTorch's formula, which is ((1 - b) / (1 - ab))^(1 / b), NaN if a or b is below 1."""
        a, b = self.concentration1, self.concentration0
        logs = (-b).log1p() / b - (-b * a).log1p()
        return _C.torch.where((a < 1) | (b < 1), math.nan, logs).exp()

    def entropy(self):
        a, b = self.concentration1, self.concentration0
        return (1 - 1 / b) + (1 - 1 / a) * ((b + 1).digamma() + euler_constant) - a.log() - b.log()
