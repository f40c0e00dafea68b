"""ExponentialFamily: the base of exponential families."""

from __future__ import annotations

from ..autograd.gradients import grad
from .distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """A distribution of density exp(<t(x), theta> - F(theta) + k(x)), where theta are the natural parameters.

    A subclass that defines the natural parameters, the log normalizer F and the mean of k has an entropy, and a
    divergence from other members of the family.
    """

    @property
    def _natural_params(self) -> tuple:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params):
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> float:
        """The mean of k(x)."""
        raise NotImplementedError

    def entropy(self):
        """F(theta) - <theta, dF/dtheta> - mean of k."""
        carrier = self._mean_carrier_measure
        parameters = [p.detach().requires_grad_() for p in self._natural_params]
        result = self._log_normalizer(*parameters)
        for p, g in zip(parameters, grad(result.sum(), parameters, create_graph=True)):
            result = result - (p * g).reshape(*self._batch_shape, -1).sum(-1)
        return result - carrier
