"""Provides the names of torch.distributions.half_normal."""

from .normal import HalfNormal

__all__ = ["HalfNormal"]
