"""torch.ao.pruning.sparsifier.nearly_diagonal_sparsifier: masks what is far from the diagonal of a matrix."""

from __future__ import annotations

from typing import Any

from .... import _C
from ....nn import Module
from .base_sparsifier import BaseSparsifier

__all__ = ["NearlyDiagonalSparsifier"]


class NearlyDiagonalSparsifier(BaseSparsifier):
    """Keeps the diagonals of matrices that are nearest to the main one.

    Args:
        nearliness: their number, which is odd; 0 keeps nothing.
    """

    def __init__(self, nearliness: int = 1) -> None:
        super().__init__({"nearliness": nearliness})

    def update_mask(self, module: Module, tensor_name: str, nearliness: int, **_kwargs: Any) -> None:  # type: ignore[override]
        """Writes the mask of a matrix.

        Raises:
            ValueError: the number is even, or too large for the matrix.
        """
        mask = module.parametrizations[tensor_name][0].mask
        if nearliness <= 0:
            mask.fill_(0.0)
            return
        height, width = mask.shape
        if nearliness % 2 == 0:
            raise ValueError("nearliness can only be an odd number")
        distance = nearliness // 2
        if distance >= min(height, width):
            raise ValueError("nearliness cannot be larger than the dimensions of tensor.")
        mask.copy_(_C.torch.ones_like(mask).triu(-distance).tril(distance))
