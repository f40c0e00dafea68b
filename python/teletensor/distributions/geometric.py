"""Provides the names of torch.distributions.geometric."""

from .discrete import Geometric

__all__ = ["Geometric"]
