"""torch.distributions.beta's names."""

from .gamma import Beta

__all__ = ["Beta"]
