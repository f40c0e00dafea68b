"""Provides the names of torch.nn.parallel.scatter_gather."""

from .data_parallel import gather, scatter, scatter_kwargs

__all__ = ["gather", "scatter", "scatter_kwargs"]
