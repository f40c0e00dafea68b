"""torch.quint8 and the other dtypes of quantized tensors (teletensor/_quantized); and torch.complex32, with which programs
compare dtypes and which no tensor has.
"""

from __future__ import annotations

from . import _C


class QuantizedDType:
    """A dtype of PyTorch that describes how integers represent numbers.

    Args:
        name: PyTorch's name.
        lowest, highest: the limits of the integers.
        stored: the dtype of the integers in the engine.
        per_byte: the integers of less than 8 bits that a byte contains, the first in its lowest bits.
    """

    is_floating_point = is_complex = False
    __module__ = "teletensor"  # in pickles

    def __init__(self, name: str, lowest: int, highest: int, stored: _C.dtype, per_byte: int = 1):
        self._name, self.limits, self.stored, self.per_byte = name, (lowest, highest), stored, per_byte

    @property
    def __class__(self) -> type:  # type: ignore[override]
        """torch.dtype, so that isinstance(torch.quint8, torch.dtype) is true."""
        return _C.dtype

    @property
    def itemsize(self) -> int:
        """The bytes of an element, at least 1."""
        return self.stored.itemsize

    @property
    def is_signed(self) -> bool:
        """Raises RuntimeError, as PyTorch does."""
        raise RuntimeError("isSignedType not supported for quantized types")

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str:
        return self._name


quint8, qint8 = QuantizedDType("quint8", 0, 255, _C.uint8), QuantizedDType("qint8", -128, 127, _C.int8)
qint32 = QuantizedDType("qint32", -(2**31), 2**31 - 1, _C.int32)
quint4x2, quint2x4 = QuantizedDType("quint4x2", 0, 15, _C.uint8, 2), QuantizedDType("quint2x4", 0, 3, _C.uint8, 4)


class HalfComplexDType:
    """A dtype of PyTorch that no engine has."""

    is_floating_point, is_complex, is_signed, itemsize = False, True, True, 4
    __module__ = "teletensor"  # in pickles

    @property
    def __class__(self) -> type:  # type: ignore[override]
        """torch.dtype, so that isinstance(torch.complex32, torch.dtype) is true."""
        return _C.dtype

    def to_real(self) -> _C.dtype:
        """The dtype of the real parts."""
        return _C.float16

    def __repr__(self) -> str:
        return "torch.complex32"

    def __reduce__(self) -> str:
        return "complex32"


complex32 = chalf = HalfComplexDType()


class qscheme(str):  # noqa: N801 - PyTorch's name
    """How numbers are mapped to integers: torch.per_tensor_affine and others."""

    __slots__ = ()
    __module__ = "teletensor"  # in pickles

    def __repr__(self) -> str:
        return str(self)

    def __reduce__(self) -> str:
        return self.removeprefix("torch.")


per_tensor_affine, per_channel_affine = qscheme("torch.per_tensor_affine"), qscheme("torch.per_channel_affine")
per_tensor_symmetric, per_channel_symmetric = qscheme("torch.per_tensor_symmetric"), qscheme("torch.per_channel_symmetric")
per_channel_affine_float_qparams = qscheme("torch.per_channel_affine_float_qparams")
