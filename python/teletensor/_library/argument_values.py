"""The values that arguments of operators accept by the type in the schema, and what the operator receives for them.

Equal to PyTorch's conversion of Python values for TorchScript's types. Numbers of a trace (SymInt, SymFloat, SymBool) are accepted
where plain numbers are, and are not converted.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from types import GeneratorType, NoneType
from typing import Any

from .. import _C, _layouts
from .._C import Tensor
from .._generator import Generator
from .._layouts import layout, memory_format
from .._quantized_names import qscheme
from .._symbolic_bool import SymBool
from .._symbolic_float import SymFloat

_SYMBOLS = (_C.SymInt, SymFloat, SymBool)
_NAMES = (layout, memory_format, qscheme)  # subclasses of str that stand for no text
_LEAST, _MOST, _MOST_UNSIGNED = -(1 << 63), (1 << 63) - 1, (1 << 64) - 1
# PyTorch's numbers of enumerations, which TorchScript's ints include. A place without a name: a dtype that does not exist here.
_DTYPES = (
    "uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128 bool qint8 quint8 qint32 bfloat16 quint4x2 "
    "quint2x4 bits1x8 bits2x4 bits4x2 bits8 bits16 float8_e5m2 float8_e4m3fn float8_e5m2fnuz float8_e4m3fnuz uint16 uint32 uint64"
).split()
_LAYOUTS = tuple(
    getattr(_layouts, name, layout(f"torch.{name}"))
    for name in ("strided", "sparse_coo", "sparse_csr", "_mkldnn", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged")
)
_FORMATS = (_layouts.contiguous_format, _layouts.preserve_format, _layouts.channels_last, _layouts.channels_last_3d)

Converter = Callable[[Any], Any]


class RefusedValue(Exception):
    """A value does not have the type of an argument."""


def _has(value: Any, *methods: str) -> bool:
    """Whether the class of a value has one of the methods."""
    return any(hasattr(type(value), name) for name in methods)


def _enumerator(value: Any) -> int | None:
    """PyTorch's number of a dtype, layout or memory format, or None."""
    if isinstance(value, _C.dtype):
        name = str(value).removeprefix("torch.")
        return _DTYPES.index(name) if name in _DTYPES else None
    if isinstance(value, layout):
        return _LAYOUTS.index(value) if value in _LAYOUTS else None
    return _FORMATS.index(value) if isinstance(value, memory_format) and value in _FORMATS else None


def _called(convert: Callable, value: Any) -> Any:
    """The result of a class's conversion. Raises RefusedValue if it fails: the value has no such number."""
    try:
        return convert(value)
    except Exception as e:
        raise RefusedValue from e


def _plain_int(value: Any) -> int:
    if isinstance(value, _SYMBOLS):
        return value
    if isinstance(value, float) or not _has(value, "__index__", "__int__"):
        raise RefusedValue
    number = _called(int, value)
    if not _LEAST <= number <= _MOST:
        raise RefusedValue
    return number


def _int(value: Any) -> int:
    if type(value) is int and _LEAST <= value <= _MOST:
        return value
    number = _enumerator(value)
    return _plain_int(value) if number is None else number


def _sym_int(value: Any) -> int:
    return value if type(value) is int and _LEAST <= value <= _MOST else _plain_int(value)


def _sym_int_of_list(value: Any) -> int:
    if isinstance(value, Tensor) and (value.dtype == _C.bool or value.is_floating_point() or value.is_complex()):
        raise RefusedValue
    return _sym_int(value)


def _float(value: Any) -> float:
    if isinstance(value, _SYMBOLS):
        return value
    if not _has(value, "__float__", "__index__"):
        raise RefusedValue
    return _called(float, value)


def _bool(value: Any) -> bool:
    if isinstance(value, _SYMBOLS):
        return value
    if value is not None and (isinstance(value, str) or not _has(value, "__bool__")):  # numpy's str has it
        raise RefusedValue
    return _called(bool, value)


def _complex(value: Any) -> complex:
    if isinstance(value, Tensor) and value.numel() == 1:
        value = value.item()
    if not _has(value, "__complex__", "__float__", "__index__") and not isinstance(value, complex):
        raise RefusedValue
    return _called(complex, value)


def _text(value: Any) -> str:
    if isinstance(value, str) and not isinstance(value, _NAMES):
        return str.__str__(value)
    if isinstance(value, (bytes, bytearray)):
        return value.decode()
    raise RefusedValue


def _scalar(value: Any) -> Any:
    if isinstance(value, _SYMBOLS) or type(value) is complex:
        return value
    if isinstance(value, (_C.dtype, layout)) and (number := _enumerator(value)) is not None:
        return number
    if isinstance(value, int):
        if not _LEAST <= value <= _MOST_UNSIGNED:
            raise OverflowError("int too big to convert")
        return int(value)
    if isinstance(value, float):
        return float(value)
    raise RefusedValue


def _tensor(value: Any) -> Tensor | None:
    if value is None or isinstance(value, Tensor):
        return value
    raise RefusedValue


def _tensor_of_list(value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    raise RefusedValue


def _generator(value: Any) -> Generator:
    if isinstance(value, Generator):
        return value
    raise RefusedValue


def _device(value: Any) -> _C.device:
    if isinstance(value, _C.device):
        return value
    return _C.device(_text(value))


def _enumeration(kind: type, values: Callable[[int], Any]) -> Converter:
    """The conversion to an enumeration, also from PyTorch's numbers."""

    def convert(value: Any) -> Any:
        if isinstance(value, kind):
            return value
        if isinstance(value, (str, _C.dtype)):
            raise RefusedValue
        number = _plain_int(value)
        if number < 0:
            raise RefusedValue
        return _called(values, number)

    return convert


_ELEMENTS: dict[str, tuple[tuple[type, ...], Converter]] = {  # by type: classes that need no conversion, and the conversion
    "Tensor": ((Tensor, NoneType), _tensor),
    "int": ((), _int),
    "SymInt": ((), _sym_int),
    "float": ((float,), _float),
    "bool": ((bool,), _bool),
    "complex": ((complex,), _complex),
    "str": ((str,), _text),
    "Scalar": ((float, bool, complex), _scalar),
    "number": ((float, bool, complex), _scalar),
    "Generator": ((Generator,), _generator),
    "Device": ((_C.device,), _device),
    "ScalarType": ((_C.dtype,), _enumeration(_C.dtype, lambda number: getattr(_C, _DTYPES[number]))),
    "Layout": ((layout,), _enumeration(layout, _LAYOUTS.__getitem__)),
    "MemoryFormat": ((memory_format,), _enumeration(memory_format, _FORMATS.__getitem__)),
}


_ITERATED = (set, frozenset, GeneratorType, map, zip, type({}.keys()), type({}.values()), type({}.items()))


def _is_sequence(value: Any) -> bool:
    """Whether a value is a sequence for PyTorch's bindings, or one of the iterable classes that they accept beside sequences."""
    if isinstance(value, (list, tuple, *_ITERATED)):
        return True
    return not isinstance(value, (str, bytes, Mapping, Tensor)) and _has(value, "__getitem__")


def _is_iterable(value: Any) -> bool:
    return not isinstance(value, _NAMES)


# By the type of elements whose conversion in lists is another one: the classes that need no conversion, the conversion, and whether a
# value may be such a list.
_IN_LISTS: dict[str, tuple[tuple[type, ...], Converter, Callable[[Any], bool]]] = {
    "Tensor": ((Tensor,), _tensor_of_list, _is_sequence),
    "int": ((), _sym_int, _is_sequence),
    "SymInt": ((), _sym_int_of_list, _is_iterable),
    "float": ((float,), _float, _is_sequence),
    "bool": ((bool,), _bool, _is_sequence),
}
_FILL = {"int": (int, _sym_int), "float": (float, float)}  # by type: the class of a number that fills a list, and its conversion


def _list_conversion(kind: str, size: str) -> Converter | None:
    """The conversion of a list by the type of its elements and the text of the number of elements, empty if it has none."""
    if kind in _IN_LISTS:
        free, convert, accepts = _IN_LISTS[kind]
    elif (inner := conversion(kind)) is not None:
        (free, convert), accepts = inner, _is_iterable
    else:
        return None
    exact, whole = frozenset(free), kind in ("int", "SymInt")
    number, fill = _FILL[kind] if size and kind in _FILL else ((), _float)

    def converted(value: Any) -> list:
        if isinstance(value, number):
            return [fill(value)] * int(size)
        if type(value) is not list and not accepts(value):
            raise RefusedValue
        try:
            found = [*value]
        except Exception as e:  # it cannot be iterated
            raise RefusedValue from e
        for v in found:  # faster than any()
            if type(v) not in exact and not (type(v) is int and whole and _LEAST <= v <= _MOST):
                return [v if type(v) in exact else convert(v) for v in found]
        return found

    return converted


@functools.cache
def conversion(kind: str) -> tuple[frozenset[type], Converter] | None:
    """The classes of values that need no conversion and the conversion for a type, such as "int[2]?"; None if values are not checked.

    The conversion raises RefusedValue for a value that does not have the type, and RuntimeError or OverflowError for one that has it
    but is invalid.
    """
    if kind in _ELEMENTS:
        free, convert = _ELEMENTS[kind]
        return frozenset(free), convert
    if kind.endswith("?"):
        inner = conversion(kind[:-1])
        return inner and (inner[0] | {NoneType}, lambda value: None if value is None else inner[1](value))
    if (match := re.fullmatch(r"(.+)\[(\d*)\]", kind)) is None:
        return None
    converted = _list_conversion(match[1], match[2])
    return converted and (frozenset(), converted)
