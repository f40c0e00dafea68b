"""Provides the names of torch.distributions.poisson."""

from .discrete import Poisson

__all__ = ["Poisson"]
