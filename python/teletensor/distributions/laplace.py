"""Provides the names of torch.distributions.laplace."""

from .continuous import Laplace

__all__ = ["Laplace"]
