"""Provides the names of torch.distributions.studentT."""

from .gamma import StudentT

__all__ = ["StudentT"]
