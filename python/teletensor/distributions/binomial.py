"""Provides the names of torch.distributions.binomial."""

from .discrete import Binomial

__all__ = ["Binomial"]
