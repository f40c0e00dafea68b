"""Provides the names of torch.distributions.negative_binomial."""

from .discrete import NegativeBinomial

__all__ = ["NegativeBinomial"]
