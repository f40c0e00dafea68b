"""Provides the names of torch.distributions.exponential."""

from .continuous import Exponential

__all__ = ["Exponential"]
