"""torch.distributions.bernoulli's names."""

from .discrete import Bernoulli

__all__ = ["Bernoulli"]
