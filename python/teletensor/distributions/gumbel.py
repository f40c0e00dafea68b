"""Provides the names of torch.distributions.gumbel."""

from .continuous import Gumbel

__all__ = ["Gumbel"]
