"""torch.functional: functions that are defined elsewhere."""

from __future__ import annotations

from . import _C
from ._C import Tensor
from ._functions import broadcast_shapes, broadcast_tensors, meshgrid
from ._ops.einsum import einsum, tensordot
from ._ops.join import atleast_1d, atleast_2d, atleast_3d, block_diag, cartesian_prod, unique, unique_consecutive
from ._ops.shape import unravel_index
from ._ops.spectral import istft, stft
from ._overridable import wrap_functions as _wrap_functions
from .linalg._lowrank import pca_lowrank, svd_lowrank
from .linalg._torch_names import chain_matmul, lu, norm
from .nn import functional as F  # noqa: N812,F401 - PyTorch's name

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes", "broadcast_tensors", "cartesian_prod",
    "cdist", "chain_matmul", "einsum", "istft", "lu", "meshgrid", "norm", "pca_lowrank", "split", "stft", "svd_lowrank",
    "tensordot", "unique", "unique_consecutive", "unravel_index",
]  # fmt: skip


cdist = _C.torch.cdist


def split(tensor: Tensor, split_size_or_sections, dim: int = 0) -> tuple[Tensor, ...]:
    """Splits the tensor into pieces of one size, or of the given sizes, along dim."""
    return _C.torch.split(tensor, split_size_or_sections, dim)


_wrap_functions(globals())
