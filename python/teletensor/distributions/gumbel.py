"""torch.distributions.gumbel's names."""

from .continuous import Gumbel

__all__ = ["Gumbel"]
