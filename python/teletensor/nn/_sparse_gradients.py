"""Rows of a weight whose gradient is sparse, for F.embedding and F.embedding_bag with sparse=True."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._C import Tensor
from .._gradients import record
from .._sparse.create import sparse_coo_tensor
from ..autograd.function import Function


class _SparseRows(Function):
    """weight[indices]; backward records the gradient of the weight as a sparse_coo tensor."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, indices: Tensor, padding_idx: int) -> Tensor:
        """The rows, of the indices' sizes and the weight's second one."""
        ctx.weight, ctx.indices, ctx.padding_idx = weight, indices, padding_idx
        return _C.ops.embedding(weight, indices, padding_idx)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple:
        """Records the gradient; the engine receives none."""
        if _C.is_grad_enabled():
            raise RuntimeError("[embedding] a sparse gradient cannot be differentiated again: create_graph=True expects sparse=False")
        weight, flat = ctx.weight, ctx.indices.reshape(-1)
        rows = gradient.reshape(flat.shape[0], weight.shape[1])
        if ctx.padding_idx >= 0:
            kept = (flat != ctx.padding_idx).nonzero().reshape(-1)
            flat, rows = flat.index_select(0, kept), rows.index_select(0, kept)
        record(weight, sparse_coo_tensor(flat.unsqueeze(0), rows, weight.shape, check_invariants=False))
        return None, None, None


def has_sparse_gradient(weight: Tensor) -> bool:
    """Whether rows() applies: to leaves, outside of traced functions, without transforms."""
    plain = weight.requires_grad and weight.is_leaf and _C.is_grad_enabled() and not _C._is_wrapper(weight)
    return plain and not _C.is_tracing() and not _C._is_dispatched((weight,))


def rows(weight: Tensor, indices: Tensor, padding_idx: int, scale_grad_by_freq: bool = False) -> Tensor:
    """The rows of a weight at indices. The weight's gradient is a sparse, uncoalesced tensor with a row per index."""
    if scale_grad_by_freq:
        raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
    return _SparseRows.apply(weight, indices, padding_idx)
