"""Rows of a weight whose gradient is sparse, for F.embedding and F.embedding_bag with sparse=True."""

from __future__ import annotations

from importlib import import_module

from .. import _C
from .._C import Tensor
from .._gradients import record
from .._sparse.tensor import coo
from ..autograd._saved_tensors import check_version


def has_sparse_gradient(weight: Tensor) -> bool:
    """Whether rows() applies: to leaves, outside of traced functions, without transforms."""
    plain = weight.requires_grad and weight.is_leaf and _C.is_grad_enabled() and not _C._is_wrapper(weight)
    return plain and not _C.is_tracing() and not _C._is_dispatched((weight,))


def rows(weight: Tensor, indices: Tensor, padding_idx: int, scale_grad_by_freq: bool = False) -> Tensor:
    """The rows of a weight at indices. The weight's gradient is a sparse, uncoalesced tensor with a row per index.

    The engine's backward pass calls for the gradient of the rows, and records none of the weight.
    """
    import_module("teletensor._sparse.functions")  # registers the operators that the gradient's users call
    if scale_grad_by_freq:
        raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
    selected = _C.ops.embedding(weight.detach(), indices, padding_idx)
    version = indices._version

    def backward(gradients: list, create_graph: bool) -> list:
        if create_graph:
            raise RuntimeError("[embedding] a sparse gradient cannot be differentiated again: create_graph=True expects sparse=False")
        check_version(indices, version, "the indices of an embedding,")
        flat = indices.reshape(-1).clone()  # the program may write to the indices, before the gradient is used
        values = gradients[0].reshape(flat.shape[0], weight.shape[1])
        if padding_idx >= 0:
            kept = (flat != padding_idx).nonzero().reshape(-1)
            flat, values = flat.index_select(0, kept), values.index_select(0, kept)
        record(weight, coo(flat.unsqueeze(0) if flat.dtype is _C.int64 else flat.to(_C.int64).unsqueeze(0), values, weight.shape))
        return [None]

    _C.custom_function([weight], [selected], backward, "EmbeddingBackward0")
    return selected
