"""Provides the names of torch.nn.parallel.parallel_apply."""

from .data_parallel import get_a_var, parallel_apply

__all__ = ["get_a_var", "parallel_apply"]
