"""The tensors in nested tuples, lists and dicts, such as a module's arguments."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from ..._C import Tensor


def map_tensors(function: Callable[[Tensor], object], value):
    """Returns a copy of the containers in which each tensor is replaced by ``function(tensor)``, in a fixed order."""
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, tuple):
        items = [map_tensors(function, item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, list):
        return [map_tensors(function, item) for item in value]
    if isinstance(value, dict):
        items = {key: map_tensors(function, item) for key, item in value.items()}
        if type(value) is dict:
            return items
        result = value.copy()
        result.update(items)
        return result
    return value


def tensors_in(value) -> list[Tensor]:
    """Returns the tensors, in the order of map_tensors."""
    found: list[Tensor] = []
    map_tensors(lambda t: found.append(t) or t, value)
    return found


def results_in(value) -> list[Tensor]:
    """Returns the tensors of a module's result, also those in the fields of dataclasses."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = [getattr(value, field.name, None) for field in dataclasses.fields(value)]
    return [t for item in value for t in results_in(item)] if isinstance(value, (tuple, list)) else []


def cast_floats(value, dtype):
    """Casts the floating-point tensors, or returns the value unchanged if dtype is None."""
    if dtype is None:
        return value
    return map_tensors(lambda t: t.to(dtype) if t.is_floating_point() and t.dtype is not dtype else t, value)
