"""PyTorch's complex functions that are not operators. Conjugates are computed at once; there are no lazy conjugates."""

from __future__ import annotations

from .. import _C
from .._C import Tensor
from .._layouts import strided
from .out_variant import exact_out_variant

__all__ = ["conj", "conj_physical", "is_conj", "is_neg", "isreal", "resolve_conj", "resolve_neg", "vdot"]

_torch = _C.torch


def conj(input: Tensor) -> Tensor:
    """Returns the elements' complex conjugates. A real tensor is returned itself."""
    return _torch.conj_physical(input) if input.dtype.is_complex else input


def conj_physical(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Same as conj(); if `out` is given, the result is written there."""
    return conj(input) if out is None else _torch.conj_physical(input, out=out)


def resolve_conj(input: Tensor) -> Tensor:
    """Returns the tensor itself: conjugates are computed at once."""
    return input


def resolve_neg(input: Tensor) -> Tensor:
    """Returns the tensor itself: negation is computed at once."""
    return input


def is_conj(input: Tensor) -> bool:
    """Whether the tensor is a lazy conjugate: always False."""
    return _is_lazy("is_conj", input)


def is_neg(input: Tensor) -> bool:
    """Whether the tensor is a lazy negation: always False."""
    return _is_lazy("is_neg", input)


def _is_lazy(name: str, input: Tensor) -> bool:
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    return False


def isreal(input: Tensor) -> Tensor:
    """Whether each element's imaginary part is 0."""
    if input.dtype.is_complex:
        return input.imag == 0
    if input.layout == strided:
        return _torch.ones_like(input, dtype=_C.bool)
    return _torch.ones(input.shape, dtype=_C.bool, device=input.device)


@exact_out_variant
@exact_out_variant
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """Returns the dot product of the conjugate of `input` with `other`, both vectors."""
    return _torch.dot(conj(input), other)


def _adjoint(input: Tensor, *, name: str = "adjoint()") -> Tensor:
    if input.dim() == 1:
        raise RuntimeError(f"tensor.{name} is only supported on matrices or batches of matrices. Got 1-D tensor.")
    return conj(input.transpose(-2, -1)) if input.dim() else conj(input)


def _hermitian(input: Tensor) -> Tensor:
    if input.dim() not in (0, 2):
        hint = " For batches of matrices, consider using tensor.mH" if input.dim() > 2 else ""
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {input.dim()}-D tensor.{hint}")
    return conj(input.transpose(0, 1)) if input.dim() else conj(input)


def _part_property(name: str, doc: str) -> property:
    part = getattr(_torch, name)

    def get(self: Tensor) -> Tensor:
        return self if name == "real" and not self.dtype.is_complex else part(self)

    def set(self: Tensor, value) -> None:
        get(self).copy_(value if isinstance(value, Tensor) else _C.tensor(value))

    return property(get, set, doc=doc)


for _name in __all__:
    setattr(Tensor, _name, globals()[_name])
Tensor.real = _part_property("real", "The real parts, as a view; a real tensor is returned itself.")
Tensor.imag = _part_property("imag", "The imaginary parts, as a view.")
Tensor.H = property(_hermitian, doc="The conjugate transpose of a matrix.")
Tensor.mH = property(lambda self: _adjoint(self, name="mH"), doc="The conjugate transposes of matrices.")
Tensor.adjoint = lambda input: _adjoint(input)
Tensor.__complex__ = lambda self: complex(self.item())
