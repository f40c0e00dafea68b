"""Types of the values of traced graphs, with PyTorch's names and texts."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._layouts import strided
from .._lazy import set_module

# PyTorch's names and numbers of dtypes.
_SCALAR_TYPES = (
    "Byte uint8 0", "Char int8 1", "Short int16 2", "Int int32 3", "Long int64 4", "Half float16 5", "Float float32 6",
    "Double float64 7", "ComplexHalf complex32 8", "ComplexFloat complex64 9", "ComplexDouble complex128 10", "Bool bool 11",
    "BFloat16 bfloat16 15", "Float8_e5m2 float8_e5m2 23", "Float8_e4m3fn float8_e4m3fn 24", "UInt16 uint16 27", "UInt32 uint32 28",
    "UInt64 uint64 29",
)  # fmt: skip
_BY_DTYPE = {
    str(getattr(_C, dtype)): (name, int(number))
    for name, dtype, number in map(str.split, _SCALAR_TYPES)
    if hasattr(_C, dtype)
}


def scalar_type(dtype: Any) -> str:
    """PyTorch's name of a dtype, such as "Float"."""
    return _BY_DTYPE[str(dtype)][0] if str(dtype) in _BY_DTYPE else str(dtype).rpartition(".")[2]


def dtype_number(dtype: Any) -> int:
    """The number that a graph of PyTorch has for a dtype. Raises NotImplementedError if PyTorch has no such dtype."""
    if str(dtype) not in _BY_DTYPE:
        raise NotImplementedError(f"[jit] expected a dtype that PyTorch's graphs can have, got {dtype}")
    return _BY_DTYPE[str(dtype)][1]


class Type:
    """A type without parameters. Its subclasses are PyTorch's; get() returns the only instance."""

    _text = ""
    _instance: Any = None

    @classmethod
    def get(cls) -> Any:
        """The type's only instance; for TensorType, the type of a tensor of which nothing else is known."""
        if "_instance" not in cls.__dict__ or cls._instance is None:
            cls._instance = cls()
        return cls._instance

    def kind(self) -> str:
        """The name of the kind of type."""
        return type(self).__name__

    @property
    def annotation_str(self) -> str:
        """The type as an annotation."""
        return self._text

    def str(self) -> str:
        """The type as the text of a graph contains it."""
        return self._text

    def __str__(self) -> str:
        return self.annotation_str

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and self.kind() == other.kind() and self.str() == other.str()

    def __hash__(self) -> int:
        return hash(self.str())


class IntType(Type):
    """The type of an int."""

    _text = "int"


class FloatType(Type):
    """The type of a float."""

    _text = "float"


class ComplexType(Type):
    """The type of a complex number."""

    _text = "complex"


class BoolType(Type):
    """The type of a bool."""

    _text = "bool"


class StringType(Type):
    """The type of a str."""

    _text = "str"


class NoneType(Type):
    """The type of None."""

    _text = "NoneType"


class DeviceObjType(Type):
    """The type of a device."""

    _text = "Device"


class AnyType(Type):
    """The type of an object that graphs of PyTorch do not have."""

    _text = "Any"


class ListType(Type):
    """The type of a list of elements of one type."""

    def __init__(self, element: Type) -> None:
        self._element = element

    def getElementType(self) -> Type:  # noqa: N802 - PyTorch's name
        """The elements' type."""
        return self._element

    @property
    def annotation_str(self) -> str:
        return f"List[{self._element.annotation_str}]"

    def str(self) -> str:
        return f"{self._element.str()}[]"


class TupleType(Type):
    """The type of a tuple."""

    def __init__(self, elements: list[Type]) -> None:
        self._elements = list(elements)

    def elements(self) -> list[Type]:
        """The elements' types."""
        return self._elements

    @property
    def annotation_str(self) -> str:
        return f"Tuple[{', '.join(e.annotation_str for e in self._elements)}]"

    def str(self) -> str:
        return f"({', '.join(e.str() for e in self._elements)})"


class TensorType(Type):
    """The type of a tensor: its dtype, sizes, strides, device and whether it requires grad; or of one without these."""

    _text = "Tensor"

    def __init__(self, tensor: Any = None) -> None:
        self._known = tensor is not None
        if not self._known:
            return
        self._dtype, self._device, self._requires_grad = tensor.dtype, tensor.device, bool(tensor.requires_grad)
        self._sizes = list(tensor.shape)
        self._strides = list(tensor.stride()) if tensor.layout is strided else None

    def isComplete(self) -> bool:  # noqa: N802
        """Whether sizes, strides, dtype and device are known."""
        return self._known and self._strides is not None

    def sizes(self) -> list[int] | None:
        """The sizes, if they are known."""
        return list(self._sizes) if self._known else None

    varyingSizes = sizes  # noqa: N815

    def strides(self) -> list[int] | None:
        """The strides, if they are known."""
        return list(self._strides) if self._known and self._strides is not None else None

    def dim(self) -> int | None:
        """The number of dimensions, if it is known."""
        return len(self._sizes) if self._known else None

    def dtype(self) -> Any:
        """The dtype, if it is known."""
        return self._dtype if self._known else None

    def scalarType(self) -> str | None:  # noqa: N802
        """PyTorch's name of the dtype, such as "Float", if it is known."""
        return scalar_type(self._dtype) if self._known else None

    def device(self) -> Any:
        """The device, if it is known."""
        return self._device if self._known else None

    def requires_grad(self) -> bool:
        """Whether the tensor requires grad; True if that is not known."""
        return self._requires_grad if self._known else True

    def undefined(self) -> bool:
        """Whether the tensor is known to be undefined: never."""
        return False

    def str(self) -> str:
        if not self._known:
            return self._text
        parts = [*map(str, self._sizes)]
        if self._strides:
            parts.append(f"strides=[{', '.join(map(str, self._strides))}]")
        parts += [f"requires_grad={int(self._requires_grad)}", f"device={self._device}"]
        return f"{self.scalarType()}({', '.join(parts)})"


def type_of(value: Any) -> Type:
    """The type of a constant."""
    if isinstance(value, _C.Tensor):
        return TensorType(value)
    kinds = ((bool, BoolType), (int, IntType), (float, FloatType), (complex, ComplexType), (str, StringType),
             (type(None), NoneType), (_C.device, DeviceObjType))  # fmt: skip
    return next((kind.get() for python, kind in kinds if isinstance(value, python)), AnyType.get())


set_module(
    "teletensor",
    AnyType, BoolType, ComplexType, DeviceObjType, FloatType, IntType, ListType, NoneType, StringType, TensorType,
    TupleType, Type,
)  # fmt: skip
