"""Conversion of samples to tensors: default_collate for batches, default_convert for single samples."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence

from ... import _C
from ..._C import Tensor

np_str_obj_array_pattern = re.compile(r"[SaUO]")
default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


def _is_numpy(value) -> bool:
    """Whether the value is a NumPy array or scalar, except a NumPy string (which is also a str)."""
    return hasattr(value, "__array_interface__") and not isinstance(value, (str, bytes))


def like(mapping: Mapping, values: dict):
    """A mapping of the same type with other values; a dict if the type cannot be copied or made from a dict."""
    try:
        if isinstance(mapping, MutableMapping):
            result = copy.copy(mapping)
            result.update(values)
            return result
        return type(mapping)(values)
    except TypeError:
        return values


def _like_sequence(sequence: Sequence, values: list):
    """A sequence of the same type with other values; a list if the type cannot be copied or made from a list."""
    try:
        if isinstance(sequence, MutableSequence):
            result = copy.copy(sequence)
            for i, value in enumerate(values):
                result[i] = value
            return result
        return type(sequence)(values)
    except TypeError:
        return values


def collate(batch, *, collate_fn_map: dict[type | tuple[type, ...], Callable] | None = None):
    """Collates a batch of samples by their type; recurses into mappings, named tuples and sequences.

    Args:
        batch: samples of the same structure.
        collate_fn_map: functions by the type of the first sample, called with the batch and the map. An exact type takes
            precedence over base types, which are tried in the map's order.

    Raises:
        TypeError: neither the map nor the recursion covers the type.
        RuntimeError: sequences in the batch have different lengths.
    """
    first = batch[0]
    if collate_fn_map is not None:
        if type(first) in collate_fn_map:
            return collate_fn_map[type(first)](batch, collate_fn_map=collate_fn_map)
        for kind, function in collate_fn_map.items():
            if isinstance(first, kind):
                return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        columns = {key: [sample[key] for sample in batch] for key in first}
        return like(first, {key: collate(c, collate_fn_map=collate_fn_map) for key, c in columns.items()})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(collate(samples, collate_fn_map=collate_fn_map) for samples in zip(*batch)))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        values = [collate(samples, collate_fn_map=collate_fn_map) for samples in zip(*batch)]
        return values if isinstance(first, tuple) else _like_sequence(first, values)
    raise TypeError(default_collate_err_msg_format.format(type(first)))


def collate_tensor_fn(batch, *, collate_fn_map=None) -> Tensor:
    """Stacks tensors along a new first dimension."""
    return _C.torch.stack(list(batch), 0)


def stack_arrays(batch, out=None):
    """Stacks NumPy arrays. Raises TypeError for strings and objects, as PyTorch does."""
    import numpy as np

    if np_str_obj_array_pattern.search(batch[0].dtype.str) is not None or batch[0].dtype.kind not in "biufc":
        raise TypeError(default_collate_err_msg_format.format(batch[0].dtype))
    if any(array.shape != batch[0].shape for array in batch):
        sizes = [(i, array.shape) for i, array in enumerate(batch) if array.shape != batch[0].shape][0]
        raise RuntimeError(
            f"stack expects each tensor to be equal size, but got {list(batch[0].shape)} at entry 0 and "
            f"{list(sizes[1])} at entry {sizes[0]}"
        )
    return np.stack(batch, out=out)


def collate_numpy_array_fn(batch, *, collate_fn_map=None) -> Tensor:
    """Stacks NumPy arrays to one tensor, with one upload."""
    return _C.tensor(stack_arrays(batch))


def collate_numpy_scalar_fn(batch, *, collate_fn_map=None) -> Tensor:
    """A tensor of NumPy scalars, in their dtype."""
    import numpy as np

    if not isinstance(batch[0], (np.bool_, np.number)):
        raise TypeError(default_collate_err_msg_format.format(type(batch[0])))
    return _C.tensor(np.stack(batch))


def collate_float_fn(batch, *, collate_fn_map=None) -> Tensor:
    """A tensor of float64."""
    return _C.tensor(batch, dtype=_C.float64)


def collate_int_fn(batch, *, collate_fn_map=None) -> Tensor:
    """A tensor of int64, or of bool."""
    return _C.tensor(batch)


def collate_str_fn(batch, *, collate_fn_map=None):
    """The batch itself."""
    return batch


class _DefaultMap(dict):
    """The default functions by type. NumPy's are added when NumPy is imported."""

    def with_numpy(self) -> _DefaultMap:
        import sys

        np = sys.modules.get("numpy")
        if np is not None and np.ndarray not in self:
            rest = {kind: self.pop(kind) for kind in list(self)[1:]}
            self[np.ndarray] = collate_numpy_array_fn
            self[(np.bool_, np.number, np.object_)] = collate_numpy_scalar_fn
            self.update(rest)
        return self


default_collate_fn_map: dict[type | tuple[type, ...], Callable] = _DefaultMap({
    Tensor: collate_tensor_fn, float: collate_float_fn, int: collate_int_fn, str: collate_str_fn, bytes: collate_str_fn,
})  # fmt: skip


def default_collate(batch):
    """Stacks tensors, arrays and numbers; recurses into sequences and mappings. Floats become float64."""
    return collate(batch, collate_fn_map=default_collate_fn_map.with_numpy())


def map_leaves(function: Callable, data):
    """Applies the function to everything in nested mappings, tuples and lists; other objects are leaves."""
    if isinstance(data, Mapping):
        return like(data, {key: map_leaves(function, value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(map_leaves(function, value) for value in data))
    if isinstance(data, (tuple, list)):
        return type(data)(map_leaves(function, value) for value in data)
    return function(data)


def default_convert(data):
    """Converts arrays to tensors, also inside sequences and mappings, and returns everything else unchanged."""
    return convert(data, _C.tensor)


def convert(data, make: Callable):
    """The same as default_convert, with another function for arrays."""
    if isinstance(data, (Tensor, str, bytes)):
        return data
    if _is_numpy(data):
        return make(data) if data.dtype.kind in "biufc" else data
    if isinstance(data, Mapping):
        return like(data, {key: convert(value, make) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(convert(value, make) for value in data))
    if isinstance(data, Sequence):
        values = [convert(value, make) for value in data]
        return values if isinstance(data, tuple) else _like_sequence(data, values)
    return data
