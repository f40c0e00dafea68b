"""torch.quint8 and the other quantized dtypes: names for observers and fake quantization; and torch.complex32, with which
programs compare dtypes. No tensor has these dtypes.
"""

from __future__ import annotations


class QuantizedDType:
    """A dtype of PyTorch that describes how integers represent numbers."""

    is_floating_point = is_complex = False

    def __init__(self, name: str, lowest: int, highest: int):
        self._name, self.limits = name, (lowest, highest)

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str:
        return self._name


quint8, qint8 = QuantizedDType("quint8", 0, 255), QuantizedDType("qint8", -128, 127)
qint32 = QuantizedDType("qint32", -(2**31), 2**31 - 1)
quint4x2, quint2x4 = QuantizedDType("quint4x2", 0, 15), QuantizedDType("quint2x4", 0, 3)


class HalfComplexDType:
    """A dtype of PyTorch that no engine has."""

    is_floating_point, is_complex, is_signed, itemsize = False, True, True, 4

    def __repr__(self) -> str:
        return "torch.complex32"

    def __reduce__(self) -> str:
        return "complex32"


complex32 = chalf = HalfComplexDType()


class qscheme(str):  # noqa: N801 - PyTorch's name
    """How numbers are mapped to integers: torch.per_tensor_affine and others."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


per_tensor_affine, per_channel_affine = qscheme("torch.per_tensor_affine"), qscheme("torch.per_channel_affine")
per_tensor_symmetric, per_channel_symmetric = qscheme("torch.per_tensor_symmetric"), qscheme("torch.per_channel_symmetric")
per_channel_affine_float_qparams = qscheme("torch.per_channel_affine_float_qparams")
