"""Provides the names of torch.distributions.weibull."""

from .continuous import Weibull

__all__ = ["Weibull"]
