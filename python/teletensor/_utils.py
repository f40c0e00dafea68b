"""torch._utils: flattening and grouping of tensors."""

from __future__ import annotations

from . import _C
from ._C import Tensor


def _flatten_dense_tensors(tensors) -> Tensor:
    """Concatenates all elements of the tensors."""
    return _C.torch.cat([t.reshape(-1) for t in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors) -> tuple[Tensor, ...]:
    """Splits `flat` into views with the tensors' sizes."""
    pieces, at = [], 0
    for t in tensors:
        pieces.append(flat.narrow(0, at, t.numel()).view(t.shape))
        at += t.numel()
    return tuple(pieces)


def _take_tensors(tensors, size_limit: int):
    """Yields lists of tensors of one dtype, each of at most `size_limit` bytes or of a single tensor."""
    waiting: dict = {}
    for t in tensors:
        held, count = waiting.get(t.dtype, ([], 0))
        size = t.numel() * t.dtype.itemsize
        if held and count + size > size_limit:
            yield held
            held, count = [], 0
        waiting[t.dtype] = ([*held, t], count + size)
    for held, _ in waiting.values():
        if held:
            yield held
