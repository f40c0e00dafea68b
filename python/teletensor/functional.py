"""torch.functional: norm, and functions that are defined elsewhere."""

from __future__ import annotations

from . import _C
from ._C import Tensor
from ._functions import broadcast_shapes, broadcast_tensors, meshgrid
from ._ops.einsum import einsum, tensordot
from ._ops.join import atleast_1d, atleast_2d, atleast_3d, block_diag, cartesian_prod, unique, unique_consecutive
from ._ops.out_variant import exact_out_variant
from .linalg import matrix_norm
from .nn import functional as F  # noqa: N812 - PyTorch's name

__all__ = [
    "F", "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes", "broadcast_tensors", "cartesian_prod",
    "einsum", "meshgrid", "norm", "split", "tensordot", "unique", "unique_consecutive",
]  # fmt: skip

split = _C.torch.split


@exact_out_variant
def norm(input: Tensor, p="fro", dim=None, keepdim: bool = False, dtype=None) -> Tensor:
    """The norm over the given dimensions, by default all."""
    value = input if dtype is None else input.to(dtype)
    if p == "nuc":
        return matrix_norm(value, "nuc", (-2, -1) if dim is None else dim, keepdim)
    return _C.torch.norm(value, p, keepdim=keepdim) if dim is None else _C.torch.norm(value, p, dim, keepdim)


Tensor.norm = norm
