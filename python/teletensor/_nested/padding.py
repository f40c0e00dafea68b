"""Conversions of jagged tensors to and from padded ones."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._C import Tensor
from .ragged import Ragged
from .tensor import NestedTensor, handlers, wrapped


def ragged_first(tensor: NestedTensor) -> Tensor:
    """The values with the ragged dimension first."""
    return tensor._elements if tensor._ragged_idx == 1 else tensor._elements.movedim(tensor._ragged_idx - 1, 0)


def padded(tensor: NestedTensor, padding: Any, length: int | None = None) -> Tensor:
    """The sequences with padding up to a length, by default that of the longest one."""
    ragged = tensor._ragged
    longest = ragged.max_seqlen() if length is None else length
    result = _C.ops.jagged_to_padded(ragged_first(tensor), ragged.offsets, ragged.lengths, longest, padding)
    return result if tensor._ragged_idx == 1 else result.movedim(1, tensor._ragged_idx)


def jagged_of(tensor: Tensor, ragged: Ragged, total: int, ragged_idx: int = 1) -> NestedTensor:
    """The jagged tensor of the entries of a padded one that are not padding."""
    first = tensor if ragged_idx == 1 else tensor.movedim(ragged_idx, 1)
    values = _C.ops.padded_to_jagged(first, ragged.offsets, ragged.lengths, total)
    return wrapped(values if ragged_idx == 1 else values.movedim(0, ragged_idx - 1), ragged, ragged_idx)


def _to_padded_tensor(arguments: list, into: list | None) -> Tensor:
    tensor, padding, output_size = arguments
    if into is not None:
        raise NotImplementedError("[to_padded_tensor] expected no out tensor, got one")
    if output_size is None:
        return padded(tensor, padding)
    r, own = tensor._ragged_idx, list(tensor._size)
    if len(output_size) != len(own):
        raise RuntimeError(f"to_padded_tensor(): expected output_size of {len(own)} numbers, got {list(output_size)}")
    if any(d != r and given != size for d, (given, size) in enumerate(zip(output_size, own, strict=True))):
        raise NotImplementedError(f"[to_padded_tensor] expected sizes {own} with another ragged size only, got {list(output_size)}")
    return padded(tensor, padding, output_size[r])


handlers["to_padded_tensor"] = _to_padded_tensor
