"""Dropout (Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting", 2014)."""

from __future__ import annotations

from .. import functional as F
from .module import Module

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _DropoutNd(Module):
    """The common base of dropout."""

    function: str

    def __init__(self, p: float = 0.5, inplace: bool = False):
        super().__init__()
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input):
        return getattr(F, self.function)(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """In training, sets each element to zero with probability p and multiplies the rest by 1 / (1 - p). In evaluation, returns its input.

    Args:
        p: from 0 to 1.
        inplace: whether to overwrite the input.

    Raises:
        ValueError: p is not from 0 to 1.

    >>> torch.nn.Dropout(0.5).eval()(torch.ones(3)).tolist(), sorted(set(torch.nn.Dropout(0.5)(torch.ones(100)).tolist()))
    ([1.0, 1.0, 1.0], [0.0, 2.0])
    """

    function = "dropout"


class Dropout1d(_DropoutNd):
    """Zeroes whole channels."""

    function = "dropout1d"


class Dropout2d(_DropoutNd):
    """In training, sets whole channels of (N, C, H, W) or (C, H, W) to zero with probability p, and multiplies the rest by 1 / (1 - p).

    Args:
        p: from 0 to 1.
        inplace: whether to overwrite the input.

    Raises:
        ValueError: p is not from 0 to 1.

    >>> channels = torch.nn.Dropout2d(0.5)(torch.ones(4, 8, 2, 2)).flatten(2)
    >>> bool((channels == channels[..., :1]).all())
    True
    """

    function = "dropout2d"


class Dropout3d(_DropoutNd):
    """Zeroes whole channels of volumes."""

    function = "dropout3d"


class AlphaDropout(_DropoutNd):
    """Dropout that preserves the mean and variance of selu's outputs."""

    function = "alpha_dropout"


class FeatureAlphaDropout(_DropoutNd):
    """AlphaDropout of whole channels."""

    function = "feature_alpha_dropout"
