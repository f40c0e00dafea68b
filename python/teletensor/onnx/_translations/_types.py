"""Type promotion of operands, as PyTorch does it."""

from __future__ import annotations

from typing import Any

from ... import _C
from ..._functions import get_default_dtype
from .._builder import Builder, Value


def _category(dtype: Any) -> int:
    return 0 if dtype is _C.bool else 2 if dtype.is_floating_point else 1


def result_type(*operands: Any) -> Any:
    """The dtype in which operands are combined: tensors with dimensions decide before those without, and these before numbers."""
    classes: list[Any] = [None, None, None]
    for v in operands:
        if v is None:
            continue
        if isinstance(v, Value):
            place, dtype = (0 if v.shape != () else 1), v.dtype
        else:
            place = 2
            dtype = _C.bool if isinstance(v, bool) else _C.int64 if isinstance(v, int) else get_default_dtype()
        classes[place] = dtype if classes[place] is None else _C.promote_types(classes[place], dtype)
    found = None
    for dtype in classes:
        if dtype is not None and (found is None or _category(dtype) > _category(found)):
            found = dtype if found is None or dtype is not None else found
    return found


def promoted(b: Builder, *operands: Any, dtype: Any = None) -> list[Value]:
    """The operands as values of one dtype."""
    dtype = dtype or result_type(*operands)
    return [b.value(v, dtype) for v in operands]


def as_integer(b: Builder, x: Value) -> Value:
    """Booleans and small integers, on which most operators do not work, as int32; other values as they are."""
    return b.cast(x, _C.int32) if x.dtype in (_C.bool, _C.uint8, _C.int8, _C.int16) else x
