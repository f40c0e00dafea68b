"""Provides the names of torch.nn.parallel.replicate."""

from .data_parallel import replicate

__all__ = ["replicate"]
