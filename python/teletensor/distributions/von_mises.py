"""Von Mises distributions."""

from __future__ import annotations

import math

from .. import _C
from .._grad_mode import no_grad
from ..special import i0e, i1e
from . import constraints
from .distribution import _Elementwise
from .utils import lazy_property

__all__ = ["VonMises"]


class VonMises(_Elementwise):
    """The density of angles that is proportional to exp(concentration cos(x - loc)). Samples are in [-pi, pi)."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc, concentration, validate_args=None):
        self._set(validate_args, loc=loc, concentration=concentration)

    mean = property(lambda self: self.loc)  # the circular mean
    mode = property(lambda self: self.loc)

    @lazy_property
    def variance(self):
        """The circular variance, 1 - I1(concentration) / I0(concentration)."""
        return 1 - i1e(self.concentration) / i0e(self.concentration)

    def expand(self, batch_shape, _instance=None):
        new = super().expand(batch_shape, _instance)
        new.__dict__.pop("variance", None)
        return new

    def log_prob(self, value):
        self._validate_sample(value)
        log_bessel = i0e(self.concentration).log() + self.concentration
        return self.concentration * (value - self.loc).cos() - math.log(2 * math.pi) - log_bessel

    def sample(self, sample_shape=()):
        """Draws samples by rejection from a wrapped Cauchy distribution (Best and Fisher 1979).

        Waits for the engine once per attempt, to read whether all samples have been accepted.
        """
        with no_grad():
            shape, loc = self._extended_shape(sample_shape), self.loc.double()
            concentration = self.concentration.double()
            r = self._envelope(concentration)
            angle, done = _C.torch.zeros(shape, dtype=_C.float64, device=loc.device), None
            while done is None or not bool(done.all()):
                u, v, w = _C.torch.rand((3, *shape), dtype=_C.float64, device=loc.device).unbind()
                z = (math.pi * u).cos()
                cosine = (1 + r * z) / (r + z)
                c = concentration * (r - cosine)
                accepted = (c * (2 - c) > v) | ((c / v).log() + 1 - c >= 0)
                angle = _C.torch.where(accepted, (w - 0.5).sign() * cosine.clamp(-1, 1).acos(), angle)
                done = accepted if done is None else done | accepted
            return ((angle + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    @staticmethod
    def _envelope(k):
        """The parameter of the wrapped Cauchy distribution. Uses a series expansion for small k, to avoid cancellation.
        """
        tau = 1 + (1 + 4 * k**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * k)
        return _C.torch.where(k < 1e-5, 1 / k + k, (1 + rho**2) / (2 * rho))
