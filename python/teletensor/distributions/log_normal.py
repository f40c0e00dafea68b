"""Provides the names of torch.distributions.log_normal."""

from .normal import LogNormal

__all__ = ["LogNormal"]
