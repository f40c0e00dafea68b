"""torch.layout, torch.memory_format and torch.qscheme: names of layouts, as strings."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ._lazy import set_module


class _Name(str):
    """A name that equals its string, which is also its repr."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class layout(_Name):  # noqa: N801 - PyTorch's name
    """The type of torch.strided and of the sparse layouts' names, which no tensor has yet."""

    __slots__ = ()


class memory_format(_Name):  # noqa: N801 - PyTorch's name
    """The type of torch.contiguous_format, torch.channels_last and the others."""

    __slots__ = ()


strided = layout("torch.strided")
sparse_coo, sparse_csr, sparse_csc = layout("torch.sparse_coo"), layout("torch.sparse_csr"), layout("torch.sparse_csc")
sparse_bsr, sparse_bsc = layout("torch.sparse_bsr"), layout("torch.sparse_bsc")
jagged = layout("torch.jagged")
contiguous_format, preserve_format = memory_format("torch.contiguous_format"), memory_format("torch.preserve_format")
channels_last, channels_last_3d = memory_format("torch.channels_last"), memory_format("torch.channels_last_3d")
legacy_contiguous_format = contiguous_format


def require_strided(what: str, *values: object) -> None:
    """Raises NotImplementedError, which names the layout or dtype, if one of the values is a sparse, nested or quantized tensor."""
    for value in values:
        if getattr(value, "is_quantized", False) is True:
            raise NotImplementedError(f"[{what}] expected tensors that are not quantized, got one of {value.dtype}: dequantize it first")
        nested, kind = getattr(value, "is_nested", False), getattr(value, "layout", strided)
        if nested is True or (isinstance(kind, layout) and kind != strided):
            name = f"a nested tensor of layout {kind}" if nested is True else f"a tensor of layout {kind}"
            raise NotImplementedError(f"[{what}] expected tensors of layout torch.strided that are not nested, got {name}")


def require_not_nested(what: str, *values: object) -> None:
    """Raises NotImplementedError for nested tensors, of a function that computes with sizes before it calls an operator."""
    if any(getattr(value, "is_nested", False) is True for value in values):
        raise NotImplementedError(f"[{what}] expected tensors that are not nested, got a nested tensor: there is no such operator for them")


def keep_channels_last(result: Any, input: Any) -> Any:
    """The result of a function composed of operators, in the memory format that the input's strides suggest."""
    suggested = {4: channels_last, 5: channels_last_3d}.get(input.dim()) if _suggests_channels_last(input) else None
    return result.contiguous(memory_format=suggested or contiguous_format)


def _suggests_channels_last(input: Any) -> bool:
    """PyTorch's rule, which also applies to strided and to expanded images: dimensions of size 1 have to be in order."""
    sizes, strides, least = input.shape, input.stride(), 0
    if len(sizes) not in (4, 5) or strides[1] == 0:
        return False
    for d in (1, *range(len(sizes) - 1, 1, -1), 0):
        if sizes[d] == 0 or strides[d] < least or d == 0 and least == strides[1]:
            return False
        least = strides[d] * max(sizes[d], 1)
    return True


set_module("teletensor", layout, memory_format)


def by_layout(function: Callable) -> Callable:
    """Decorator of a method of Tensor that classes of other layouts override: Tensor.values(x) is x.values() there.

    These classes set `_has_own_layout`.
    """

    @functools.wraps(function)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if getattr(type(self), "_has_own_layout", False) and (own := getattr(type(self), function.__name__)) is not method:
            return own(self, *args, **kwargs)
        return function(self, *args, **kwargs)

    return method
