"""norm, as a function and as a method."""

from __future__ import annotations

from .. import _C
from .._C import Tensor
from .out_variant import exact_out_variant

__all__ = ["norm"]


def norm(input: Tensor, p="fro", dim=None, keepdim: bool = False, out: Tensor | None = None, dtype=None) -> Tensor:
    """The norm over the given dimensions, by default all."""
    return _norm(input, p, dim, keepdim, dtype, out=out)


@exact_out_variant
def _norm(input: Tensor, p, dim, keepdim: bool, dtype) -> Tensor:
    if dtype is not None and dtype.is_complex != input.is_complex():
        kind = "complex" if input.is_complex() else "real"
        raise RuntimeError(f"linalg.vector_norm: dtype should be {kind} for {kind} inputs, but got {dtype}")
    value = input if dtype is None else input.to(dtype)
    if p == "nuc":
        from ..linalg import matrix_norm

        return matrix_norm(value, "nuc", (-2, -1) if dim is None else dim, keepdim)
    return _C.torch.norm(value, p, keepdim=keepdim) if dim is None else _C.torch.norm(value, p, dim, keepdim)


def _norm_method(self: Tensor, p="fro", dim=None, keepdim: bool = False, dtype=None) -> Tensor:
    """The norm over the given dimensions, by default all."""
    return norm(self, p, dim, keepdim, None, dtype)


Tensor.norm = _norm_method
