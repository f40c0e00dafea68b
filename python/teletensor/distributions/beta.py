"""Provides the names of torch.distributions.beta."""

from .gamma import Beta

__all__ = ["Beta"]
