"""Provides the names of torch.distributions.dirichlet."""

from .gamma import Dirichlet

__all__ = ["Dirichlet"]
