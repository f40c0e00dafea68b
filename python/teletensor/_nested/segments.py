"""The engine's operators on ragged dimensions; on devices that have no kernels for them, the same of other operators.

All take values with the ragged dimension first, and the sequences' offsets and lengths (None: each sequence ends where the
next one begins). Offsets that decrease or exceed the values, and lengths that exceed their offsets, are errors in both
forms. The composed forms check them on the device: the error is that of an index out of range, with the next read.
"""

from __future__ import annotations

from typing import Any

from .. import _C
from .._C import Tensor
from .._functions import finfo, iinfo

_ops, _torch = _C.ops, _C.torch

# Device types with kernels of the operators.
_WITH_KERNELS = frozenset(("cpu", "meta"))


def has_kernels(tensor: Tensor) -> bool:
    """Whether the engine has kernels for ragged dimensions on the tensor's device."""
    return tensor.device.type in _WITH_KERNELS


def _counts(offsets: Tensor, lengths: Tensor | None) -> Tensor:
    return offsets.diff() if lengths is None else lengths


def _checked(offsets: Tensor, lengths: Tensor | None, total: int) -> Tensor:
    """The offsets, selected by indices that are out of range unless each sequence lies between its offsets in [0, total]."""
    room = offsets.diff()
    given = room if lengths is None else lengths
    valid = (offsets[0] >= 0) & (offsets[-1] <= total) & (room >= 0).all() & ((given >= 0) & (given <= room)).all()
    count = offsets.shape[0]
    return offsets.index_select(0, _torch.arange(0, count, device=offsets.device).masked_fill(~valid, count))


def _places(offsets: Tensor, lengths: Tensor | None, length: int) -> tuple[Tensor, Tensor]:
    """For each sequence and position below `length`, the entry there, and whether the sequence has it: [sequences, length]."""
    positions = _torch.arange(0, length, device=offsets.device)
    has = positions < _counts(offsets, lengths).unsqueeze(1)
    return (offsets[:-1].unsqueeze(1) + positions).masked_fill(~has, 0), has


def _rows(offsets: Tensor, lengths: Tensor | None, total: int) -> tuple[Tensor, Tensor, Tensor]:
    """For each entry, its sequence, its position in it, and whether it belongs to one: [total]."""
    offsets = _checked(offsets, lengths, total)
    entries = _torch.arange(0, total, device=offsets.device)
    row = (_torch.searchsorted(offsets, entries, right=True) - 1).clamp(0, max(offsets.shape[0] - 2, 0))
    position = entries - offsets.index_select(0, row)
    inside = (position >= 0) & (position < _counts(offsets, lengths).index_select(0, row))
    return row, position, inside


def _like(mask: Tensor, values: Tensor) -> Tensor:
    """A mask with dimensions of size 1 after its own."""
    return mask.reshape(*mask.shape, *[1] * (values.dim() - mask.dim()))


def to_padded(values: Tensor, offsets: Tensor, lengths: Tensor | None, length: int, padding: Any = 0) -> Tensor:
    """jagged_to_padded: [sequences, length, *rest]."""
    if has_kernels(values):
        return _ops.jagged_to_padded(values, offsets, lengths, length, padding)
    at, has = _places(_checked(offsets, lengths, values.shape[0]), lengths, length)
    if values.shape[0] == 0:
        return values.new_full((*at.shape, *values.shape[1:]), padding)
    selected = values.index_select(0, at.reshape(-1)).reshape(*at.shape, *values.shape[1:])
    return selected.masked_fill(_like(~has, selected), padding)


def from_padded(padded: Tensor, offsets: Tensor, lengths: Tensor | None, total: int) -> Tensor:
    """padded_to_jagged: [total, *rest]. Entries of no sequence, and those after the padded ones, are 0."""
    if has_kernels(padded):
        return _ops.padded_to_jagged(padded, offsets, lengths, total)
    if padded.shape[0] == 0 or padded.shape[1] == 0:
        return padded.new_zeros((total, *padded.shape[2:]))
    row, position, inside = _rows(offsets, lengths, total)
    inside = inside & (position < padded.shape[1])
    at = (row * padded.shape[1] + position).masked_fill(~inside, 0)
    selected = padded.flatten(0, 1).index_select(0, at)
    return selected.masked_fill(_like(~inside, selected), 0)


def expand(rows: Tensor, offsets: Tensor, lengths: Tensor | None, total: int) -> Tensor:
    """jagged_expand: a row for each entry of its sequence, [total, *rest]; 0 for entries of no sequence."""
    if has_kernels(rows):
        return _ops.jagged_expand(rows, offsets, lengths, total)
    if rows.shape[0] == 0:
        return rows.new_zeros((total, *rows.shape[1:]))
    row, _, inside = _rows(offsets, lengths, total)
    selected = rows.index_select(0, row)
    return selected.masked_fill(_like(~inside, selected), 0)


def reduce(values: Tensor, offsets: Tensor, lengths: Tensor | None, how: str) -> Tensor:
    """jagged_reduce: "sum", "amax" or "amin" of each sequence, [sequences, *rest]."""
    if has_kernels(values):
        return _ops.jagged_reduce(values, offsets, lengths, how)
    if values.dtype is _C.bool:
        raise NotImplementedError(f"[jagged_reduce] {how} of torch.bool over a ragged dimension")
    batch = offsets.shape[0] - 1
    if batch == 0:
        return values.new_zeros((0, *values.shape[1:]))
    if how == "sum":
        row, _, inside = _rows(offsets, lengths, values.shape[0])
        kept = values.masked_fill(_like(~inside, values), 0)
        wide = _C.float64 if values.dtype in (_C.float32, _C.float16, _C.bfloat16) else values.dtype
        sums = _torch.zeros((batch, *values.shape[1:]), dtype=wide, device=values.device)
        return sums.index_add(0, row, kept.to(wide)).to(values.dtype)
    # Padded, because every device reduces a dimension; PyTorch's result for an empty sequence is the dtype's limit.
    longest = int(_counts(offsets, lengths).max())
    info = _limits(values.dtype)
    padded = to_padded(values, offsets, lengths, max(longest, 1), info[0] if how == "amax" else info[1])
    return padded.amax(1) if how == "amax" else padded.amin(1)


def _limits(dtype: Any) -> tuple[Any, Any]:
    info = finfo(dtype) if dtype.is_floating_point else iinfo(dtype)
    return info.min, info.max


def softmax(values: Tensor, offsets: Tensor, lengths: Tensor | None, log: bool) -> Tensor:
    """jagged_softmax: over the entries of each sequence."""
    if has_kernels(values):
        return _ops.jagged_softmax(values, offsets, lengths, log)
    total = values.shape[0]
    shifted = values - expand(reduce(values.detach(), offsets, lengths, "amax"), offsets, lengths, total)
    shares = shifted.exp()
    sums = expand(reduce(shares, offsets, lengths, "sum"), offsets, lengths, total)
    return shifted - sums.log() if log else shares / sums
