"""Provides the names of torch.distributions.bernoulli."""

from .discrete import Bernoulli

__all__ = ["Bernoulli"]
