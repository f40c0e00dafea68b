"""Provides the names of torch.distributions.chi2."""

from .gamma import Chi2

__all__ = ["Chi2"]
