"""all_reduce of sparse_coo tensors, as PyTorch's Gloo backend computes it: the ranks gather the elements and add them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _C
from .._component_tensor import ComponentTensor
from .._grad_mode import no_grad
from .._sparse.tensor import SparseTensor, coo
from . import _options
from ._reduce_op import RedOpType, ReduceOp, name_and_factor
from ._work import Work

if TYPE_CHECKING:
    from ._process_group import ProcessGroup

_MAX_DIMS = 64


def require_reducible(tensor: _C.Tensor, op: ReduceOp | RedOpType) -> None:
    """Raises for a layout or a reduction that all_reduce_sparse() does not compute.

    Raises:
        NotImplementedError: the layout is not sparse_coo.
        RuntimeError: the reduction is not SUM.
    """
    if not isinstance(tensor, ComponentTensor):
        raise NotImplementedError("[all_reduce] expected tensors of one layout, got a list with sparse and strided tensors")
    if not isinstance(tensor, SparseTensor) or not tensor.is_sparse:
        kind = "nested tensor" if tensor.is_nested else "tensor"
        expected = "a tensor of layout torch.strided or torch.sparse_coo"
        raise NotImplementedError(f"[all_reduce] expected {expected}, got a {kind} of layout {tensor.layout}")
    if name_and_factor(op) != ("sum", 1.0):
        raise RuntimeError(f"[all_reduce] expected ReduceOp.SUM for a tensor of layout torch.sparse_coo, got {op}")


def all_reduce_sparse(group: ProcessGroup, tensor: SparseTensor) -> Work:
    """Adds the tensors of all ranks, which may have different numbers of elements, in place. The result is coalesced.

    Waits for the other ranks' numbers of elements.

    Raises:
        NotImplementedError: a rank's tensor is not a leaf, but has a history.
        RuntimeError: the ranks' tensors have different sizes or sparse dimensions.
    """
    from .._sparse import functions  # noqa: F401 - registers the operators of sparse tensors

    with no_grad():
        own = tensor.detach().coalesce()
        counts = _counts_of_ranks(group, own, tensor.requires_grad and not tensor.is_leaf)
        device = own.device
        indices = [_C.torch.empty((own.sparse_dim(), n), dtype=_C.int64, device=device) for n in counts]
        values = [_C.torch.empty((n, *own._elements.shape[1:]), dtype=own.dtype, device=device) for n in counts]
        waits = _options.AllToAllOptions(asyncOp=False)
        group.alltoall(indices, [own._coo.contiguous()] * len(counts), waits)
        work = group.alltoall(values, [own._elements.contiguous()] * len(counts), waits)
        tensor.copy_(coo(_C.torch.cat(indices, 1), _C.torch.cat(values), own.shape).coalesce())
    work._outputs = [tensor]
    return work


def _counts_of_ranks(group: ProcessGroup, own: SparseTensor, has_history: bool) -> list[int]:
    """The number of elements of each rank's tensor. Waits. All ranks raise the same errors."""
    padded = [*own.shape, *[0] * _MAX_DIMS][:_MAX_DIMS]
    described = [own._nnz(), int(has_history), own.sparse_dim(), own.dim(), *padded]
    rows = [_C.torch.empty(len(described), dtype=_C.int64, device="cpu") for _ in range(group.size())]
    group.allgather([rows], [_C.tensor(described, dtype=_C.int64, device="cpu")], _options.AllgatherOptions(asyncOp=False))
    found = _C.torch.stack(rows).tolist()
    if (dims := max(row[3] for row in found)) > _MAX_DIMS:
        raise RuntimeError(f"[all_reduce] expected at most {_MAX_DIMS} dimensions, got {dims}")
    if with_history := [rank for rank, row in enumerate(found) if row[1]]:
        raise NotImplementedError(
            f"[all_reduce] expected sparse tensors without a history, got one on rank {with_history[0]}: pass tensor.detach()"
        )
    for rank, (_, _, sparse_dim, dim, *size) in enumerate(found):
        if [sparse_dim, dim, *size] != described[2:]:
            raise RuntimeError(
                f"[all_reduce] Sparse dimensions do not match: expected size {list(own.shape)} with {own.sparse_dim()} sparse "
                f"dimensions, got {size[:dim]} with {sparse_dim} on rank {rank}"
            )
    return [row[0] for row in found]
