"""torch.int4 and the other dtypes below 8 bits: names for configurations of quantization. No tensor has these dtypes."""

from __future__ import annotations

from . import _C


class SmallIntegerDType:
    """An integer dtype of 1 to 7 bits; values are stored in int8 or uint8, or packed."""

    is_floating_point = is_complex = False

    def __init__(self, name: str, bits: int, is_signed: bool) -> None:
        self._name, self.bits, self.is_signed, self.itemsize = name, bits, is_signed, 1
        self.limits = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if is_signed else (0, 2**bits - 1)

    @property
    def __class__(self) -> type:  # type: ignore[override]
        """torch.dtype, so that isinstance(torch.int4, torch.dtype) is true."""
        return _C.dtype

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str:
        return self._name


int1, int2, int3, int4, int5, int6, int7 = (SmallIntegerDType(f"int{n}", n, True) for n in range(1, 8))
uint1, uint2, uint3, uint4, uint5, uint6, uint7 = (SmallIntegerDType(f"uint{n}", n, False) for n in range(1, 8))
