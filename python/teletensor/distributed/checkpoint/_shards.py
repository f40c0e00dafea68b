"""The protocol for values of a state dict of which each rank stores a part.

Such a value has a method ``__shards__()``. It returns the shape of the whole, and a list of (offsets, tensor): the boxes
that this rank stores. `offsets` is the index of a box's first element in the whole, and `tensor`, whose shape is the
box's, is a view of the memory that the value uses: loading writes to it. Boxes of one rank do not overlap; several ranks
may store the same box, with equal values. Every tensor has as many dimensions as the whole, and the value's dtype. All
ranks must have the value, even those without a box.

A tensor may have the method as an attribute. Other tensors are stored whole by every rank.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ..._C import Tensor
from ..._grad_mode import no_grad
from ...serialization._composed import copy_composed, is_composed

Box = tuple[tuple[int, ...], Tensor]


def boxes_of(value) -> tuple[tuple[int, ...], list[Box]] | None:
    """The shape and this rank's boxes of a sharded value or a tensor; None for other values.

    Raises:
        ValueError: ``__shards__()`` returned boxes that are not within the shape.
    """
    method = getattr(value, "__shards__", None)
    if method is None:
        return (tuple(value.shape), [((0,) * value.dim(), value)]) if isinstance(value, Tensor) else None
    size, boxes = method()
    size = tuple(size)
    found = []
    for offsets, tensor in boxes:
        inside = len(offsets) == len(size) == tensor.dim() and all(
            0 <= low and low + n <= whole for low, n, whole in zip(offsets, tensor.shape, size, strict=True)
        )
        if not inside:
            raise ValueError(
                f"[checkpoint] __shards__() returned a box {tuple(tensor.shape)} at {tuple(offsets)} of a tensor {size}"
            )
        if tensor.numel() or not math.prod(size):
            found.append((tuple(offsets), tensor))
    return size, found


def is_sharded(value) -> bool:
    """Whether a rank may have only a part of the value."""
    return hasattr(value, "__shards__")


def flat_boxes(shape: Sequence[int], start: int, part: Tensor) -> Iterator[Box]:
    """Divides consecutive elements of a tensor in row-major order, from `start` on, into boxes: views of `part`."""
    shape, end = tuple(shape), start + part.numel()
    if start == end:
        return
    if not shape:
        yield (), part.view(())
        return
    row = math.prod(shape[1:])
    if row == 1:
        yield (start, *(0,) * (len(shape) - 1)), part.view((end - start, *shape[1:]))
        return

    def within(first: int, last: int) -> Iterator[Box]:  # part of the row that contains `first`
        index = first // row
        piece = part[first - start : last - start]
        for offsets, tensor in flat_boxes(shape[1:], first - index * row, piece):
            yield (index, *offsets), tensor[None]

    first_row, last_row = -(-start // row), end // row  # complete rows
    if first_row > last_row:
        yield from within(start, end)
        return
    if start < first_row * row:
        yield from within(start, first_row * row)
    if first_row < last_row:
        rows = part[first_row * row - start : last_row * row - start]
        yield (first_row, *(0,) * (len(shape) - 1)), rows.view((last_row - first_row, *shape[1:]))
    if last_row * row < end:
        yield from within(last_row * row, end)


def intersection(
    low: Sequence[int], sizes: Sequence[int], other_low: Sequence[int], other_sizes: Sequence[int]
) -> tuple[list[int], list[int]] | None:
    """Offsets and sizes of the intersection of two boxes; None if it is empty."""
    begin = [max(a, b) for a, b in zip(low, other_low, strict=True)]
    ends = [min(a + m, b + n) for a, m, b, n in zip(low, sizes, other_low, other_sizes, strict=True)]
    lengths = [e - b for b, e in zip(begin, ends, strict=True)]
    return (begin, lengths) if all(n > 0 for n in lengths) else None


def narrowed(tensor: Tensor, offsets: Sequence[int], lengths: Sequence[int]) -> Tensor:
    """The view of a box."""
    for dim, (offset, length) in enumerate(zip(offsets, lengths, strict=True)):
        if offset != 0 or length != tensor.shape[dim]:
            tensor = tensor.narrow(dim, offset, length)
    return tensor


def copy_value(target, source) -> None:
    """Copies a tensor or sharded value to this rank's boxes of another one with the same shape.

    Raises:
        RuntimeError: one is a sparse, nested or quantized tensor, and the other has another layout or other sizes.
        ValueError: the shapes differ, or this rank does not have the elements of the source.
    """
    if is_composed(target) or is_composed(source):
        copy_composed("a value of the state dict", target, source)
        return
    size, boxes = boxes_of(target)
    source_size, source_boxes = boxes_of(source)
    if size != source_size:
        raise ValueError(f"[checkpoint] expected a tensor of shape {size}, got {source_size}")
    with no_grad():
        for offsets, tensor in boxes:
            copied = 0
            for other, values in source_boxes:
                common = intersection(offsets, tensor.shape, other, values.shape)
                if common is None and tensor.numel():
                    continue
                begin, lengths = common or (list(offsets), list(tensor.shape))
                to = narrowed(tensor.detach(), [b - o for b, o in zip(begin, offsets, strict=True)], lengths)
                to.copy_(narrowed(values.detach(), [b - o for b, o in zip(begin, other, strict=True)], lengths))
                copied += math.prod(lengths)
            if copied < tensor.numel():
                raise ValueError(
                    "[checkpoint] the value is divided among the ranks in a different way: load it in place instead"
                )
