"""Integers as PyTorch's functions accept them: Python's, and those of other libraries, such as NumPy's int64."""

from __future__ import annotations

import numbers
import operator
from typing import Any, TypeGuard

_SEQUENCES = (tuple, list)


def is_int(value: Any) -> TypeGuard[int]:
    """Whether a value is an integer."""
    return isinstance(value, int) or isinstance(value, numbers.Integral)


def repeated(value: Any, count: int) -> tuple[int, ...]:
    """`count` times the integer `value`, or the items of the sequence `value`."""
    if isinstance(value, int):
        return (value,) * count
    if not isinstance(value, _SEQUENCES) and getattr(value, "ndim", None) == 0 and hasattr(value, "__index__"):
        value = operator.index(value)  # an integer in a tensor, for which it waits
    if isinstance(value, _SEQUENCES) or not isinstance(value, numbers.Integral):
        return tuple(value)
    return (int(value),) * count
