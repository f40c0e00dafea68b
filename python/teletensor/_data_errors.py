"""The exceptions of torch.tensor(data) in PyTorch for data that cannot become a tensor."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

_NUMBER_METHODS = ("__float__", "__index__", "__complex__", "__array__", "__array_interface__")
_MOST_LEAVES = 1 << 20  # that are examined


def _leaves(data: Any) -> Iterator[Any]:
    """The items of nested lists and tuples, in order."""
    if isinstance(data, (list, tuple)):
        for item in data:
            yield from _leaves(item)
    else:
        yield data


def _is_number(value: Any) -> bool:
    return any(hasattr(type(value), name) for name in _NUMBER_METHODS)


def _has_other_byte_order(value: Any) -> bool:
    return not getattr(getattr(value, "dtype", None), "isnative", True)


def _replacement(data: Any, infers_dtype: bool, error: Exception) -> Exception | None:
    if isinstance(data, (str, bytes)):
        return TypeError(f"new(): invalid data type '{type(data).__name__}'")
    leaves = list(itertools.islice(_leaves(data), _MOST_LEAVES))
    if any(map(_has_other_byte_order, leaves)):
        return ValueError("given numpy array has byte order different from the native byte order, which is not supported")
    if isinstance(error, TypeError) and not str(error).startswith("must be real number"):
        return None
    if leaves and isinstance(leaves[0], str) and leaves[0]:
        return ValueError("too many dimensions 'str'")
    for leaf in leaves if infers_dtype else ():
        if isinstance(leaf, (str, bytes)):
            return TypeError(f"new(): invalid data type '{type(leaf).__name__}'")
        if not _is_number(leaf):
            return RuntimeError(f"Could not infer dtype of {type(leaf).__name__}")
    return None


def replaced(data: Any, infers_dtype: bool, error: Exception) -> Exception:
    """PyTorch's exception for data that could not be converted, or `error` itself if PyTorch's has the same class.

    Args:
        infers_dtype: the call has no dtype, which PyTorch then infers before it converts values.
        error: the exception of the conversion.
    """
    try:
        return _replacement(data, infers_dtype, error) or error
    except RecursionError:  # a list contains itself
        return error
