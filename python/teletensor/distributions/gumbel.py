"""Provides the names of torch.distributions.gumbel."""

from .continuous import Gumbel
from .utils import euler_constant  # noqa: F401 - programs import these from here

__all__ = ["Gumbel"]
