"""torch.ao.pruning.sparsifier.weight_norm_sparsifier: masks blocks of a weight with the smallest norms."""

from __future__ import annotations

from typing import Any, Callable

from .... import _C
from ...._C import Tensor
from ....nn import Module
from ....nn import functional as F
from .base_sparsifier import BaseSparsifier

__all__ = ["WeightNormSparsifier"]


def _blocks(size: int, block: int) -> int:
    return -(-size // block)


class WeightNormSparsifier(BaseSparsifier):
    """Masks the blocks of matrices with the smallest norms, or some elements of these blocks.

    Args:
        sparsity_level: the part of the blocks that is masked.
        sparse_block_shape: (rows, columns) of a block.
        zeros_per_block: the elements of a block that are masked, those with the smallest norms; None: all.
        norm: 1, 2, or a function of the weight.
    """

    def __init__(
        self, sparsity_level: float = 0.5, sparse_block_shape: tuple[int, int] = (1, 4), zeros_per_block: int | None = None,
        norm: Callable | int | None = None,
    ) -> None:  # fmt: skip
        rows, columns = sparse_block_shape
        if norm is not None and not callable(norm) and norm not in (1, 2):
            raise NotImplementedError(f"L-{norm} is not yet implemented.")
        self.norm_fn = norm if callable(norm) else (lambda t: t.abs()) if norm == 1 else (lambda t: t * t)
        super().__init__({
            "sparsity_level": sparsity_level, "sparse_block_shape": sparse_block_shape,
            "zeros_per_block": rows * columns if zeros_per_block is None else zeros_per_block,
        })  # fmt: skip

    @staticmethod
    def _tensor_mask(norms: Tensor, sparsity_level: float, shape: tuple[int, int]) -> Tensor:
        """0 for the elements of the blocks with the smallest averages."""
        (height, width), (rows, columns) = norms.shape, shape
        averages = F.avg_pool2d(norms[None, None], shape, shape, ceil_mode=True).flatten() if rows * columns > 1 else norms.flatten()
        count = averages.numel()
        masked = max(0, min(count - 1, round(sparsity_level * count)))
        chosen = _C.torch.topk(averages, masked, largest=False)[1]
        mask = _C.torch.ones(count, device=norms.device).index_fill(0, chosen, 0.0)
        mask = mask.reshape(_blocks(height, rows), _blocks(width, columns))
        return mask.repeat_interleave(rows, 0).repeat_interleave(columns, 1)[:height, :width]

    @staticmethod
    def _block_mask(norms: Tensor, shape: tuple[int, int], zeros_per_block: int) -> Tensor:
        """0 for the smallest elements of each block."""
        (height, width), (rows, columns) = norms.shape, shape
        down, across = _blocks(height, rows), _blocks(width, columns)
        padded = F.pad(norms, (0, across * columns - width, 0, down * rows - height), value=float("nan"))  # the largest
        blocks = padded.reshape(down, rows, across, columns).permute(0, 2, 1, 3).reshape(-1, rows * columns)
        chosen = _C.torch.topk(blocks, zeros_per_block, dim=1, largest=False)[1]
        mask = _C.torch.ones(blocks.shape, device=norms.device).scatter(1, chosen, 0.0)
        mask = mask.reshape(down, across, rows, columns).permute(0, 2, 1, 3).reshape(padded.shape)
        return mask[:height, :width]

    def update_mask(  # type: ignore[override]
        self, module: Module, tensor_name: str, sparsity_level: float, sparse_block_shape: tuple[int, int], zeros_per_block: int,
        **_kwargs: Any,
    ) -> None:  # fmt: skip
        """Writes the mask of a matrix.

        Raises:
            ValueError: ``zeros_per_block`` is negative or exceeds the block, the block is empty, or the parameter is no matrix.
        """
        rows, columns = sparse_block_shape
        if rows < 1 or columns < 1:
            raise ValueError(f"expected a block of at least one element, got {sparse_block_shape}")
        if zeros_per_block > rows * columns:
            raise ValueError("Number of zeros per block cannot be more than the total number of elements in that block.")
        if zeros_per_block < 0:
            raise ValueError("Number of zeros per block should be positive.")
        mask = module.parametrizations[tensor_name][0].mask
        whole = zeros_per_block == rows * columns
        if sparsity_level <= 0 or zeros_per_block == 0 or (sparsity_level >= 1 and whole):
            mask.fill_(0.0 if sparsity_level >= 1 and whole else 1.0)
            return
        norms = self.norm_fn(getattr(module, tensor_name).detach())
        if norms.dim() != 2:
            raise ValueError(f"expected a matrix as {tensor_name}, got {norms.dim()} dimensions")
        shape = (rows, columns)
        if sparsity_level >= 1:
            found = _C.torch.zeros_like(norms)
        else:
            found = self._tensor_mask(norms, sparsity_level, shape)
        if not whole:
            found = _C.torch.maximum(found, self._block_mask(norms, shape, zeros_per_block))
        mask.copy_(found)
