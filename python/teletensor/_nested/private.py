"""PyTorch's private functions of nested tensors: torch._nested_*."""

from .create import nested_tensor_from_mask as _nested_tensor_from_mask
from .create import nested_tensor_from_mask_left_aligned as _nested_tensor_from_mask_left_aligned
from .tensor import NestedTensor


def _nested_get_values(input: NestedTensor):
    """The values of a jagged tensor, with gradient history."""
    return input.values()


def _nested_get_offsets(input: NestedTensor):
    """The offsets of a jagged tensor."""
    return input.offsets()


def _nested_get_lengths(input: NestedTensor):
    """The lengths of a jagged tensor, or None."""
    return input.lengths()


def _nested_get_ragged_idx(input: NestedTensor) -> int:
    """The ragged dimension of a jagged tensor."""
    return input._ragged_idx


__all__ = [
    "_nested_get_lengths", "_nested_get_offsets", "_nested_get_ragged_idx", "_nested_get_values", "_nested_tensor_from_mask",
    "_nested_tensor_from_mask_left_aligned",
]  # fmt: skip
