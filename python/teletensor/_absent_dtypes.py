"""torch.bits8, torch.float8_e4m3fnuz and others: dtypes that programs compare with, and that no tensor of an engine has."""

from __future__ import annotations

from . import _C
from ._small_integers import uint1


class AbsentDType:
    """A dtype of PyTorch without tensors: operators refuse it.

    Args:
        name: PyTorch's name.
        itemsize: bytes of an element.
        kind: "float", "complex" or "bits".
        signed: whether numbers may be negative.
        limits: the values of torch.finfo, as (bits, eps, max, tiny, resolution).
    """

    __module__ = "teletensor"  # in pickles

    def __init__(
        self, name: str, itemsize: int, kind: str, signed: bool = True, limits: tuple[int, float, float, float, float] | None = None
    ) -> None:
        self._name, self.itemsize, self._kind, self._signed, self.limits = name, itemsize, kind, signed, limits
        self.is_floating_point, self.is_complex = kind == "float", kind == "complex"

    @property
    def __class__(self) -> type:  # type: ignore[override]
        """torch.dtype, so that isinstance(torch.bits8, torch.dtype) is true."""
        return _C.dtype

    @property
    def is_signed(self) -> bool:
        """Whether numbers may be negative. Raises RuntimeError for bits, as PyTorch does."""
        if self._kind == "bits":
            raise RuntimeError("Bits types are undefined")
        return self._signed

    def to_real(self) -> object:
        """The dtype of the parts of complex numbers; of others the dtype itself."""
        return _C.bfloat16 if self._kind == "complex" else self

    def to_complex(self) -> object:
        """The dtype itself if it is complex. Raises RuntimeError for others, as PyTorch does."""
        if self._kind != "complex":
            raise RuntimeError(f"Unknown Complex ScalarType for {self._name.capitalize()}")
        return self

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str:
        return self._name


bit = uint1
bits1x8, bits2x4, bits4x2, bits8 = (AbsentDType(name, 1, "bits") for name in ("bits1x8", "bits2x4", "bits4x2", "bits8"))
bits16 = AbsentDType("bits16", 2, "bits")
bcomplex32 = AbsentDType("bcomplex32", 4, "complex")
float4_e2m1fn_x2 = AbsentDType("float4_e2m1fn_x2", 1, "float")
float8_e4m3fnuz = AbsentDType("float8_e4m3fnuz", 1, "float", limits=(8, 2.0**-3, 240.0, 2.0**-7, 1.0))
float8_e5m2fnuz = AbsentDType("float8_e5m2fnuz", 1, "float", limits=(8, 2.0**-2, 57344.0, 2.0**-15, 1.0))
float8_e8m0fnu = AbsentDType("float8_e8m0fnu", 1, "float", signed=False, limits=(8, 1.0, 2.0**127, 2.0**-127, 1.0))
