"""torchao.quantization.utils: sizes of blocks, and the error of a quantization."""

from __future__ import annotations

from collections.abc import Sequence

from ..._C import Tensor
from .granularity import Granularity, PerAxis, PerBlock, PerGroup, PerRow, PerTensor, PerToken

__all__ = ["compute_error", "get_block_size"]


def get_block_size(input_shape: Sequence[int], granularity: Granularity) -> tuple[int, ...]:
    """The sizes of the blocks of elements that share a scale.

    Raises:
        AssertionError: the last size is not a multiple of the size of groups.
        ValueError: an unknown granularity.
    """
    shape = tuple(input_shape)
    if isinstance(granularity, PerTensor):
        return shape
    if isinstance(granularity, PerAxis):
        return tuple(1 if i == granularity.axis % len(shape) else n for i, n in enumerate(shape))
    if isinstance(granularity, PerRow):
        return tuple(n if i == granularity.dim % len(shape) else 1 for i, n in enumerate(shape))
    if isinstance(granularity, PerToken):
        return (1,) * (len(shape) - 1) + shape[-1:]
    if isinstance(granularity, PerGroup):
        if shape[-1] % granularity.group_size:
            raise AssertionError(f"expected a last size that is a multiple of group_size {granularity.group_size}, got {shape}")
        return (1,) * (len(shape) - 1) + (granularity.group_size,)
    if isinstance(granularity, PerBlock):
        return tuple(granularity.block_size)
    raise ValueError(f"Unsupported Granularity: {granularity}")


def compute_error(x: Tensor, y: Tensor) -> Tensor:
    """The ratio of the signal `x` to the difference of `x` and `y`, in decibels."""
    return 20 * ((x * x).sum().sqrt() / ((x - y) ** 2).sum().sqrt()).log10()
