"""Sequences and optional values."""

from __future__ import annotations

from typing import Any

import numpy as np

import teletensor as torch

from .. import _values
from .._call import Call, keeps, sees_types
from .._values import Narrow

Tensor = torch.Tensor


def _position(index: Any, size: int, what: str, end: int = 0) -> int:
    at = int(_values.integer(index))
    if not -size <= at < size + end:
        raise IndexError(f"[{what}] expected a position within {size} elements, got {at}")
    return at + size if at < 0 else at


@keeps()
@sees_types
def _construct(_call: Call, *inputs: Any) -> list:
    return _one(list(inputs))


def _one(value: list) -> tuple:
    return (value,)


@keeps()
@sees_types
def _empty(_call: Call) -> tuple:
    return _one([])


@keeps()
@sees_types
def _at(_call: Call, sequence: list, index: Any) -> Any:
    return sequence[_position(index, len(sequence), "SequenceAt")]


@keeps()
@sees_types
def _insert(_call: Call, sequence: list, value: Any, index: Any = None) -> tuple:
    at = len(sequence) if index is None else _position(index, len(sequence), "SequenceInsert", 1)
    return _one([*sequence[:at], value, *sequence[at:]])


@keeps()
@sees_types
def _erase(_call: Call, sequence: list, index: Any = None) -> tuple:
    at = _position(index, len(sequence), "SequenceErase") if index is not None else len(sequence) - 1
    return _one([*sequence[:at], *sequence[at + 1 :]])


@keeps()
@sees_types
def _length(_call: Call, sequence: list) -> np.ndarray:
    return np.asarray(len(sequence), dtype=np.int64)


@keeps()
def _concat(call: Call, sequence: list) -> Any:
    axis = call.need("axis")
    if all(isinstance(v, np.ndarray) for v in sequence):
        return np.stack(sequence, axis) if call.get("new_axis", 0) else np.concatenate(sequence, axis)
    tensors = [call.tensor(v) for v in sequence]
    return torch.stack(tensors, axis) if call.get("new_axis", 0) else torch.cat(tensors, axis)


@keeps()
@sees_types
def _split(call: Call, x: Any, split: Any = None) -> tuple:
    narrow = x.type if isinstance(x, Narrow) else None
    x = _values.plain(x)
    axis = call.get("axis", 0)
    if _values.is_text(x):
        size = x.shape[axis]
        parts = _parts(call, split, size)
        if sum(parts) != size or min(parts, default=0) < 0:
            raise ValueError(f"[SplitToSequence] expected sizes whose sum is {size}, got {parts[:8]}")
        return _one(list(np.split(x, np.cumsum(parts)[:-1], axis=axis)))
    x = call.tensor(x)
    pieces = list(torch.split(x, _parts(call, split, int(x.shape[axis])), axis))
    if split is None and not call.get("keepdims", 1):
        pieces = [p.squeeze(axis) for p in pieces]
    return _one([Narrow(p, narrow) for p in pieces] if narrow else pieces)


def _parts(call: Call, split: Any, size: int) -> list[int]:
    if split is None:
        call.run.allowance.use(size)
        return [1] * size
    sizes = [int(n) for n in _values.ints(split)]
    if _values.shape_of(split) != ():
        return sizes
    if sizes[0] < 1:
        raise ValueError(f"[SplitToSequence] expected a size of at least 1, got {sizes[0]}")
    call.run.allowance.use(size // sizes[0])
    return [min(sizes[0], size - at) for at in range(0, size, sizes[0])]


@keeps()
@sees_types
def _optional(_call: Call, value: Any = None) -> Any:
    return _one(value)


@keeps()
@sees_types
def _get(_call: Call, value: Any) -> Any:
    if value is None:
        raise ValueError("[OptionalGetElement] expected a value, got an empty optional")
    return _one(value)


@keeps()
@sees_types
def _has(_call: Call, value: Any = None) -> np.ndarray:
    return np.asarray(value is not None)


TABLE: dict[str, tuple] = {
    "SequenceConstruct": ((11, _construct),), "SequenceEmpty": ((11, _empty),), "SequenceAt": ((11, _at),),
    "SequenceInsert": ((11, _insert),), "SequenceErase": ((11, _erase),), "SequenceLength": ((11, _length),),
    "ConcatFromSequence": ((11, _concat),), "SplitToSequence": ((11, _split),), "Optional": ((15, _optional),),
    "OptionalGetElement": ((15, _get),), "OptionalHasElement": ((15, _has),),
}  # fmt: skip
