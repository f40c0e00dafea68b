"""The standard's dtypes: kinds, promotion and limits."""

from __future__ import annotations

from typing import Any

from .. import _C, _functions
from .._C import Tensor

__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

_KIND_NAMES = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
KINDS = {kind: {name: getattr(_C, name) for name in names} for kind, names in _KIND_NAMES.items()}
_UNIONS = {
    "integral": ("signed integer", "unsigned integer"),
    "numeric": ("signed integer", "unsigned integer", "real floating", "complex floating"),
}
_RANK = {"bool": 0, "signed integer": 1, "unsigned integer": 1, "real floating": 2, "complex floating": 3}
_KIND_OF = {dtype: kind for kind, dtypes in KINDS.items() for dtype in dtypes.values()}
_FLOAT_KIND = {False: "real floating", True: "complex floating"}


def kind_of(dtype: _C.dtype) -> str:
    """The dtype's kind. half and bfloat16, which the standard does not define, are real floating."""
    return _KIND_OF.get(dtype) or _FLOAT_KIND[dtype.is_complex]


def dtypes_of(kind: str | tuple[str, ...] | None) -> dict[str, _C.dtype]:
    """A dict from name to dtype for one kind, several kinds, or all kinds (None)."""
    if isinstance(kind, tuple):
        return {name: dtype for k in kind for name, dtype in dtypes_of(k).items()}
    if kind is None:
        return dtypes_of(tuple(KINDS))
    if kind in _UNIONS:
        return dtypes_of(_UNIONS[kind])
    if kind not in KINDS:
        raise ValueError(f"{kind!r} is not a kind of dtypes: expected one of {', '.join([*KINDS, *_UNIONS])}")
    return KINDS[kind]


def isdtype(dtype: _C.dtype, kind: Any) -> bool:
    """Whether the dtype matches `kind`: a dtype, the name of a kind, or a tuple with at least one match."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, _C.dtype):
        return dtype is kind
    if kind == "real floating":  # includes half and bfloat16
        return dtype.is_floating_point
    return dtype in dtypes_of(kind).values()


def promoted(a: _C.dtype, b: _C.dtype) -> _C.dtype:
    """The dtype to which a and b promote.

    Raises TypeError for uint64 with a signed integer, because no integer dtype can represent both.
    """
    if a is b:
        return a
    kinds = {kind_of(a), kind_of(b)}
    if kinds == {"signed integer", "unsigned integer"}:
        signed, unsigned = (a, b) if kind_of(a) == "signed integer" else (b, a)
        if unsigned.itemsize == 8:
            raise TypeError(f"{signed} and {unsigned} do not promote: no integer dtype can represent both")
        return KINDS["signed integer"][f"int{8 * max(signed.itemsize, 2 * unsigned.itemsize)}"]
    low, high = sorted((a, b), key=lambda dtype: _RANK[kind_of(dtype)])
    # A higher kind determines the dtype: bool < integer < floating-point and complex.
    if _RANK[kind_of(low)] < min(_RANK[kind_of(high)], 2):
        return high
    if kinds == {"unsigned integer"}:
        return max(a, b, key=lambda dtype: dtype.itemsize)
    return _C.promote_types(a, b)


def with_number(dtype: _C.dtype, number: Any) -> _C.dtype:
    """Promotes a dtype with a Python number. Only the kind of the number matters."""
    if isinstance(number, bool):
        return dtype
    rank = 1 if isinstance(number, int) else 2 if isinstance(number, float) else 3
    if rank <= _RANK[kind_of(dtype)]:
        return dtype
    if rank == 1:
        return _C.int64
    floating = dtype if dtype.is_floating_point else _C.default_dtype()
    return floating if rank == 2 else _C.complex128 if floating is _C.float64 else _C.complex64


def result_type(*arrays_and_dtypes: Any) -> _C.dtype:
    """The dtype to which arrays, dtypes and Python numbers promote. Only the kind of a number matters."""
    dtypes = [x.dtype if isinstance(x, Tensor) else x for x in arrays_and_dtypes]
    numbers = [x for x in dtypes if isinstance(x, (bool, int, float, complex))]
    dtypes = [x for x in dtypes if not isinstance(x, (bool, int, float, complex))]
    if not dtypes:
        raise ValueError("[result_type] expected at least one array or dtype, got none")
    result = dtypes[0]
    for dtype in dtypes[1:]:
        result = promoted(result, dtype)
    for number in numbers:
        result = with_number(result, number)
    return result


def promote_operands(*values: Any) -> tuple[Any, ...]:
    """Casts the tensors among the values to the promoted dtype of all values; returns numbers unchanged."""
    dtype = result_type(*values)
    return tuple(v.to(dtype) if isinstance(v, Tensor) and v.dtype is not dtype else v for v in values)


def promote_to_tensors(*values: Any) -> tuple[Tensor, ...]:
    """Converts all values, including numbers, to tensors of their promoted dtype."""
    dtype = result_type(*values)
    device = next(v.device for v in values if isinstance(v, Tensor))
    return tuple(v.to(dtype) if isinstance(v, Tensor) else _C.tensor(v, dtype=dtype, device=device) for v in values)


def can_cast(from_: Any, to: _C.dtype, /) -> bool:
    """Whether promotion of `from_` with `to` gives `to`."""
    from_ = from_.dtype if isinstance(from_, Tensor) else from_
    try:
        return promoted(from_, to) is to
    except TypeError:
        return False


def astype(x: Tensor, dtype: _C.dtype, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """Casts x to a dtype and moves it to a device; copies unless copy is False and both are unchanged."""
    return x.to(dtype=dtype, device=device, copy=copy)


class finfo(_functions.finfo):  # noqa: N801 - the standard's name
    """Limits of a real floating dtype, or of the parts of a complex dtype; also accepts an array."""

    def __init__(self, type: Any, /):
        dtype = type.dtype if isinstance(type, Tensor) else type
        super().__init__({_C.complex64: _C.float32, _C.complex128: _C.float64}.get(dtype, dtype))


class iinfo(_functions.iinfo):  # noqa: N801 - the standard's name
    """Limits of an integer dtype; also accepts an array."""

    def __init__(self, type: Any, /):
        super().__init__(type.dtype if isinstance(type, Tensor) else type)
