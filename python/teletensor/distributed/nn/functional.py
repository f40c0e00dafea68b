"""Collectives with gradients: the backward pass runs the transposed collective.

All ranks must call backward(), in the same order.
"""

from __future__ import annotations

from ... import _C
from ...autograd import Function
from .. import _collectives as collectives
from .._reduce_op import ReduceOp, name_and_factor
from .._world import _canonicalize_group_rank, _group_or_default_group

__all__ = [
    "Function", "ReduceOp", "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather",
    "reduce", "reduce_scatter", "scatter",
]  # fmt: skip


def _like(tensor: _C.Tensor, count: int) -> list[_C.Tensor]:
    return [_C.torch.empty_like(tensor) for _ in range(count)]


class _Broadcast(Function):
    @staticmethod
    def forward(ctx, src, pg, tensor):
        ctx.src, ctx.pg = src, pg
        tensor = tensor.clone()
        collectives.broadcast(tensor, group_src=src, group=pg)
        return tensor

    @staticmethod
    def backward(ctx, grad):
        total = _Reduce.apply(ctx.src, ReduceOp.SUM, ctx.pg, grad)
        return None, None, total if ctx.pg.rank() == ctx.src else _C.torch.zeros_like(total)


class _Reduce(Function):
    @staticmethod
    def forward(ctx, dst, op, pg, tensor):
        ctx.dst, ctx.pg = dst, pg
        tensor = tensor.clone()
        collectives.reduce(tensor, op=op, group_dst=dst, group=pg)
        return tensor

    @staticmethod
    def backward(ctx, grad):
        return None, None, None, _Broadcast.apply(ctx.dst, ctx.pg, grad)


class _Gather(Function):
    @staticmethod
    def forward(ctx, dst, pg, tensor):
        ctx.dst, ctx.pg = dst, pg
        gathered = [_C.torch.zeros_like(tensor) for _ in range(pg.size())]
        collectives.gather(tensor, gathered if pg.rank() == dst else None, group_dst=dst, group=pg)
        return tuple(gathered)

    @staticmethod
    def backward(ctx, *grads):
        return None, None, _Scatter.apply(ctx.dst, ctx.pg, *grads)


class _Scatter(Function):
    @staticmethod
    def forward(ctx, src, pg, *tensors):
        if any(t.shape != tensors[0].shape for t in tensors):
            raise AssertionError(f"[scatter] expected tensors of one shape, got {[tuple(t.shape) for t in tensors]}")
        ctx.src, ctx.pg = src, pg
        received = _C.torch.zeros_like(tensors[0])
        collectives.scatter(received, list(tensors) if pg.rank() == src else None, group_src=src, group=pg)
        return received

    @staticmethod
    def backward(ctx, grad):
        return None, None, *_Gather.apply(ctx.src, ctx.pg, grad)


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx, op, pg, output, *tensors):
        ctx.pg = pg
        collectives.reduce_scatter(output, list(tensors), op=op, group=pg)
        ctx.mark_dirty(output)
        return output

    @staticmethod
    def backward(ctx, grad):
        return None, None, None, *_AllGather.apply(ctx.pg, grad)


class _AllGather(Function):
    @staticmethod
    def forward(ctx, pg, tensor):
        ctx.pg = pg
        gathered = _like(tensor, pg.size())
        collectives.all_gather(gathered, tensor, group=pg)
        return tuple(gathered)

    @staticmethod
    def backward(ctx, *grads):
        return None, _ReduceScatter.apply(ReduceOp.SUM, ctx.pg, _C.torch.empty_like(grads[ctx.pg.rank()]), *grads)


class _AllToAll(Function):
    @staticmethod
    def forward(ctx, pg, outputs, *tensors):
        ctx.pg, ctx.shapes = pg, [t.shape for t in tensors]
        collectives.all_to_all(outputs, list(tensors), group=pg)
        return tuple(outputs)

    @staticmethod
    def backward(ctx, *grads):
        received = [_C.torch.empty(shape, dtype=grads[0].dtype, device=grads[0].device) for shape in ctx.shapes]
        return None, None, *_AllToAll.apply(ctx.pg, received, *grads)


class _AllToAllSingle(Function):
    @staticmethod
    def forward(ctx, pg, output, output_splits, input_splits, tensor):
        ctx.pg, ctx.shape, ctx.splits = pg, tensor.shape, (input_splits, output_splits)
        collectives.all_to_all_single(output, tensor, output_splits, input_splits, group=pg)
        return output

    @staticmethod
    def backward(ctx, grad):
        received = _C.torch.empty(ctx.shape, dtype=grad.dtype, device=grad.device)
        return None, None, None, None, _AllToAllSingle.apply(ctx.pg, received, *ctx.splits, grad)


def broadcast(tensor, src, group=None):
    """Returns rank `src`'s tensor on all ranks. Gradient: at `src` the sum over all ranks, elsewhere zero."""
    pg = _group_or_default_group(group)
    return _Broadcast.apply(_canonicalize_group_rank(pg, src), pg, tensor)


def gather(tensor, dst=0, group=None):
    """Returns all ranks' tensors at rank `dst`, and zeros elsewhere."""
    pg = _group_or_default_group(group)
    return _Gather.apply(_canonicalize_group_rank(pg, dst), pg, tensor)


def scatter(tensors, src=0, group=None):
    """Returns this rank's entry of the list of tensors at rank `src`. The lists on other ranks only give the shapes."""
    pg = _group_or_default_group(group)
    return _Scatter.apply(_canonicalize_group_rank(pg, src), pg, *tensors)


def reduce(tensor, dst, op=ReduceOp.SUM, group=None):
    """Returns the reduction over all ranks at rank `dst`, and the tensor's values elsewhere."""
    pg = _group_or_default_group(group)
    return _Reduce.apply(_canonicalize_group_rank(pg, dst), op, pg, tensor)


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None):
    """Reduces a list over all ranks, and returns the tensor at this rank's position, which is stored in `output`."""
    return _ReduceScatter.apply(op, _group_or_default_group(group), output, *input_list)


def all_gather(tensor, group=None):
    """Returns a tuple of all ranks' tensors. Gradient: the sum over all ranks of the gradients of this rank's tensor."""
    pg = _group_or_default_group(group)
    parts = _C.ops.group_gathered(
        tensor.unsqueeze(0), pg._handle.select(0, 0), dim=0, ranks=pg.size(), sums=True
    )
    return parts.unbind(0)


def all_to_all(output_tensor_list, input_tensor_list, group=None):
    """Sends one tensor to each rank; returns a tuple of the tensors received, which are stored in `output_tensor_list`."""
    return _AllToAll.apply(_group_or_default_group(group), output_tensor_list, *input_tensor_list)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None):  # noqa: A002
    """Sends one part of a tensor to each rank; returns the parts received, which are stored in `output`."""
    pg = _group_or_default_group(group)
    return _AllToAllSingle.apply(pg, output, output_split_sizes, input_split_sizes, input)


def all_reduce(tensor, op=ReduceOp.SUM, group=None):
    """Returns the reduction over all ranks. Gradient, of sum and average: the reduction of the ranks' gradients."""
    name, factor = name_and_factor(op)
    if name == "premul_sum":
        tensor, name = tensor * factor, "sum"
    handle = _group_or_default_group(group)._handle.select(0, 0)
    return _C.ops.group_reduced(tensor, handle, op=name, sums=True)
