"""Provides the names of torch.distributions.pareto."""

from .continuous import Pareto

__all__ = ["Pareto"]
