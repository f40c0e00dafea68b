"""Conversion of samples to tensors: default_collate for batches, default_convert for single samples."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, Sequence

from ... import _C
from ..._C import Tensor


def _is_array(value) -> bool:
    """Whether the value is a NumPy array or scalar, except a NumPy string (which is also a str)."""
    return hasattr(value, "__array_interface__") and not isinstance(value, (str, bytes))


def like(mapping: Mapping, values: dict):
    """A mapping of the same type with other values."""
    if isinstance(mapping, MutableMapping):
        result = copy.copy(mapping)
        result.update(values)
        return result
    return type(mapping)(values)


def default_collate(batch):
    """Stacks tensors, arrays and numbers; recurses into sequences and mappings. Floats become float64."""
    return collate(batch, stack)


def stack(tensors: list[Tensor]) -> Tensor:
    """Stacks tensors along a new first dimension."""
    return _C.torch.stack(tensors, 0)


def collate(batch, stack: Callable):
    """The same as default_collate, with another function for lists of tensors."""
    first = batch[0]
    if isinstance(first, Tensor):
        return stack(list(batch))
    if isinstance(first, (str, bytes)):
        return batch
    if _is_array(first):
        import numpy as np

        if first.dtype.kind not in "biufc":
            raise _unsupported(first.dtype)
        return _C.tensor(np.stack(batch))
    if isinstance(first, (bool, int, float)):
        return _C.tensor(batch, dtype=_C.float64 if isinstance(first, float) else None)
    if isinstance(first, Mapping):
        return like(first, {key: collate([sample[key] for sample in batch], stack) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(collate(samples, stack) for samples in zip(*batch)))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        return [collate(samples, stack) for samples in zip(*batch)]
    raise _unsupported(type(first))


def map_leaves(function: Callable, data):
    """Applies the function to everything in nested mappings, tuples and lists; other objects are leaves."""
    if isinstance(data, Mapping):
        return like(data, {key: map_leaves(function, value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(map_leaves(function, value) for value in data))
    if isinstance(data, (tuple, list)):
        return type(data)(map_leaves(function, value) for value in data)
    return function(data)


def _unsupported(kind) -> TypeError:
    return TypeError(f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {kind}")


def default_convert(data):
    """Converts arrays to tensors, also inside sequences and mappings, and returns everything else unchanged."""
    if isinstance(data, (Tensor, str, bytes)):
        return data
    if _is_array(data):
        return _C.tensor(data) if data.dtype.kind in "biufc" else data
    if isinstance(data, Mapping):
        return like(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(value) for value in data))
    if isinstance(data, Sequence):
        return [default_convert(value) for value in data]
    return data
