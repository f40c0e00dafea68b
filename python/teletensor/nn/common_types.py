"""Argument types for annotations, with the names of torch.nn.common_types."""

from __future__ import annotations

from typing import Tuple, TypeVar, Union

T = TypeVar("T")
_scalar_or_tuple_1_t = Union[T, Tuple[T]]
_scalar_or_tuple_2_t = Union[T, Tuple[T, T]]
_scalar_or_tuple_3_t = Union[T, Tuple[T, T, T]]
_size_1_t, _size_2_t, _size_3_t = _scalar_or_tuple_1_t[int], _scalar_or_tuple_2_t[int], _scalar_or_tuple_3_t[int]
_size_any_t = Union[int, Tuple[int, ...]]
