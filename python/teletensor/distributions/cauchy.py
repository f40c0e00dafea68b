"""Provides the names of torch.distributions.cauchy."""

from .continuous import Cauchy

__all__ = ["Cauchy"]
