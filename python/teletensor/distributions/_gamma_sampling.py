"""Samples of the standard gamma distribution, with gradients with respect to the concentration."""

from __future__ import annotations

from .. import _C
from .._functions import finfo
from ..autograd.function import Function, once_differentiable
from ..special import gammainc, gammaincc

# The step of the difference quotient, relative to the range over which the distribution function changes.
_STEP = 1e-3


def standard_gamma(concentration, shape):
    """Draws samples of gamma distributions with rate 1. `shape` is the shape of the result."""
    return _StandardGamma.apply(concentration.expand(shape).contiguous())


class _StandardGamma(Function):
    """Implicit reparameterization (Figurnov et al. 2018): dz/da = -(dP(a, z)/da) / p(z), where P is the cdf."""

    @staticmethod
    def forward(ctx, concentration):
        drawn = _C.ops.standard_gamma(concentration).clamp_min(finfo(concentration.dtype).tiny)
        ctx.save_for_backward(concentration, drawn)
        return drawn

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        concentration, drawn = ctx.saved_tensors
        return gradient * _derivative(concentration.double(), drawn.double()).to(gradient.dtype)


def _derivative(a, z):
    """dz/da at constant P(a, z), in float64. Uses 1 - P in the upper half, where P itself has too few digits."""
    step = _STEP * _C.torch.minimum(a, a.sqrt())
    log_density = (a - 1) * z.log() - z - a.lgamma()
    lower = _ratio(gammainc, a, z, step, log_density)
    upper = _ratio(gammaincc, a, z, step, log_density)
    return _C.torch.where(gammainc(a, z) < 0.5, -lower, upper)


def _ratio(function, a, z, step, log_density):
    """(d function(a, z) / da) / density, by the five-point stencil applied to the function's logarithm."""
    at = lambda n: function(a + n * step, z).log()  # noqa: E731
    slope = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step)
    return slope * (at(0) - log_density).exp()
