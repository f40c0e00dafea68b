"""norm, as a function and as a method."""

from __future__ import annotations

from .. import _C
from .._C import Tensor
from .out_variant import exact_out_variant

__all__ = ["norm"]


@exact_out_variant
def norm(input: Tensor, p="fro", dim=None, keepdim: bool = False, dtype=None) -> Tensor:
    """The norm over the given dimensions, by default all."""
    value = input if dtype is None else input.to(dtype)
    if p == "nuc":
        from ..linalg import matrix_norm

        return matrix_norm(value, "nuc", (-2, -1) if dim is None else dim, keepdim)
    return _C.torch.norm(value, p, keepdim=keepdim) if dim is None else _C.torch.norm(value, p, dim, keepdim)


Tensor.norm = norm
