"""Provides the names of torch.distributions.multinomial."""

from .categorical import Multinomial

__all__ = ["Multinomial"]
