"""Dropout (Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting", 2014)."""

from __future__ import annotations

from .. import functional as F
from .module import Module

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class Dropout(Module):
    """In training, zeroes elements with probability p and scales the rest."""

    function = "dropout"

    def __init__(self, p: float = 0.5, inplace: bool = False):
        super().__init__()
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input):
        return getattr(F, self.function)(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout1d(Dropout):
    """Zeroes whole channels."""

    function = "dropout1d"


class Dropout2d(Dropout):
    """Zeroes whole channels of images."""

    function = "dropout2d"


class Dropout3d(Dropout):
    """Zeroes whole channels of volumes."""

    function = "dropout3d"


class AlphaDropout(Dropout):
    """Dropout that preserves the mean and variance of selu's outputs."""

    function = "alpha_dropout"


class FeatureAlphaDropout(AlphaDropout):
    """AlphaDropout of whole channels."""

    function = "feature_alpha_dropout"
