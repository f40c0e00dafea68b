"""Conversion of samples to tensors: default_collate for batches, default_convert for single samples."""

from __future__ import annotations

import copy
from collections.abc import Mapping, MutableMapping, Sequence

from ... import _C
from ..._C import Tensor


def _is_array(value) -> bool:
    """Whether the value is a NumPy array or scalar, except a NumPy string (which is also a str)."""
    return hasattr(value, "__array_interface__") and not isinstance(value, (str, bytes))


def _like(mapping: Mapping, values: dict):
    """A mapping of the same type with other values."""
    if isinstance(mapping, MutableMapping):
        result = copy.copy(mapping)
        result.update(values)
        return result
    return type(mapping)(values)


def default_collate(batch):
    """Stacks tensors, arrays and numbers; recurses into sequences and mappings. Floats become float64."""
    first = batch[0]
    if isinstance(first, Tensor):
        return _C.torch.stack(list(batch), 0)
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
        return _like(first, {key: default_collate([sample[key] for sample in batch]) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(default_collate(samples) for samples in zip(*batch)))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        return [default_collate(samples) for samples in zip(*batch)]
    raise _unsupported(type(first))


def _unsupported(kind) -> TypeError:
    return TypeError(f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {kind}")


def default_convert(data):
    """Converts arrays to tensors, also inside sequences and mappings, and returns everything else unchanged."""
    if isinstance(data, (Tensor, str, bytes)):
        return data
    if _is_array(data):
        return _C.tensor(data) if data.dtype.kind in "biufc" else data
    if isinstance(data, Mapping):
        return _like(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(value) for value in data))
    if isinstance(data, Sequence):
        return [default_convert(value) for value in data]
    return data
