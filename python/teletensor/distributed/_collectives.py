"""The collectives of torch.distributed.

A call returns at once: the engine runs the collective before the session's next calls, and its error is raised where a
result is read. Only ``barrier`` waits. With ``async_op=True`` a collective runs beside the session's next calls, until
``Work.wait()``.
"""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Iterator
from datetime import timedelta

from .. import _C
from ..futures import Future
from . import _options
from ._process_group import ProcessGroup
from ._reduce_op import ReduceOp, supports_complex
from ._work import Work
from ._world import (
    _canonicalize_group_rank,
    _get_default_group,
    _group_or_default_group,
    _rank_not_in_group,
    _warn_not_in_group,
    check_timeout,
)  # fmt: skip

_Tensor = _C.Tensor


def _check_single_tensor(value, name: str) -> None:
    if not isinstance(value, _Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n             but got {type(value)} instead."
        )


def _check_tensor_list(value, name: str) -> None:
    expected = f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n             but got {type(value)}"
    if not isinstance(value, list):
        raise TypeError(f"{expected} instead.")
    if not all(isinstance(entry, _Tensor) for entry in value):
        raise TypeError(f"{expected} with elements of type {[type(entry) for entry in value]}.")


def _check_same_dtype(*tensors) -> None:
    """Raises ValueError unless all tensors, given alone or in lists, have one dtype."""
    flat = itertools.chain.from_iterable(entry if isinstance(entry, list) else [entry] for entry in tensors)
    last = None
    for tensor in flat:
        if last is not None and tensor.dtype != last:
            raise ValueError(f"Invalid usage of tensors with different dtypesFound {last} and  {tensor.dtype}")
        last = tensor.dtype


def _own_group(group: ProcessGroup | None, name: str) -> ProcessGroup | None:
    """The group, by default the default one; None, after a warning, if this process is no rank of it."""
    if _rank_not_in_group(group):
        _warn_not_in_group(name, stacklevel=4)  # the line that calls the collective
        return None
    return _group_or_default_group(group)


def _finish(work: Work, async_op: bool) -> Work | None:
    return work if async_op else None


def broadcast(
    tensor: _Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Copies a rank's tensor to all ranks' tensors, which have its shape and dtype."""
    if (pg := _own_group(group, "broadcast")) is None:
        return None
    root = _canonicalize_group_rank(pg, src, group_src)
    _check_single_tensor(tensor, "tensor")
    return _finish(pg.broadcast([tensor], _options.BroadcastOptions(asyncOp=async_op, rootRank=root)), async_op)


def all_reduce(
    tensor: _Tensor, op=ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Reduces a tensor over all ranks, in place. All ranks receive the same bits.

    Tensors of layout sparse_coo are added (ReduceOp.SUM only); they may have different numbers of elements on the ranks, for
    which the call waits. The result is coalesced.
    """
    _check_single_tensor(tensor, "tensor")
    if (pg := _own_group(group, "all_reduce")) is None:
        return None
    if tensor.is_complex() and not supports_complex(op):
        raise ValueError(f"all_reduce does not support {op} on complex tensors")
    return _finish(pg.allreduce([tensor], _options.AllreduceOptions(asyncOp=async_op, reduceOp=op)), async_op)


def all_reduce_coalesced(
    tensors: list[_Tensor], op=ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Future | None:
    """Reduces several tensors over all ranks, in place, in one collective.

    The tensors have one dtype, or one complex dtype and that of its parts.
    """
    tensors = [tensors] if isinstance(tensors, _Tensor) else tensors
    _check_tensor_list(tensors, "tensor")
    if (pg := _own_group(group, "all_reduce_coalesced")) is None:
        return None
    if any(t.is_complex() for t in tensors) and not supports_complex(op):
        raise ValueError(f"all_reduce does not support {op} on complex tensors")
    if len({t.is_complex() for t in tensors}) == 2:
        tensors = [_C.torch.view_as_real(t.detach()) if t.is_complex() else t for t in tensors]
    _check_same_dtype(tensors)
    work = pg.allreduce_coalesced(tensors, _options.AllreduceCoalescedOptions(asyncOp=async_op, reduceOp=op))
    return work.get_future() if async_op else None


def reduce(
    tensor: _Tensor,
    dst: int | None = None,
    op=ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Reduces a tensor over all ranks into one rank's tensor. The other ranks' tensors are unchanged."""
    if (pg := _own_group(group, "reduce")) is None:
        return None
    root = _canonicalize_group_rank(pg, dst, group_dst)
    _check_single_tensor(tensor, "tensor")
    return _finish(pg.reduce([tensor], _options.ReduceOptions(asyncOp=async_op, reduceOp=op, rootRank=root)), async_op)


def all_gather(
    tensor_list: list[_Tensor], tensor: _Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Gathers the tensors of all ranks, which have one shape, into a list."""
    _check_tensor_list(tensor_list, "tensor_list")
    _check_single_tensor(tensor, "tensor")
    _check_same_dtype(tensor_list, tensor)
    if (pg := _own_group(group, "all_gather")) is None:
        return None
    return _finish(pg.allgather([tensor_list], [tensor], _options.AllgatherOptions(asyncOp=async_op)), async_op)


def all_gather_single(
    output_tensor: _Tensor, input_tensor: _Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Gathers the tensors of all ranks into one tensor, concatenated or stacked."""
    _check_single_tensor(input_tensor, "input_tensor")
    _check_single_tensor(output_tensor, "output_tensor")
    if (pg := _own_group(group, "all_gather_single")) is None:
        return None
    return _finish(
        pg.all_gather_single(output_tensor, input_tensor, _options.AllgatherOptions(asyncOp=async_op)), async_op
    )


def all_gather_into_tensor(
    output_tensor: _Tensor, input_tensor: _Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Same as all_gather_single()."""
    return all_gather_single(output_tensor, input_tensor, group, async_op)


_all_gather_base = all_gather_into_tensor


def all_gather_coalesced(
    output_tensor_lists: list[list[_Tensor]],
    input_tensor_list: list[_Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Future | None:
    """Gathers several tensors of one dtype of all ranks: ``output_tensor_lists[rank][i]``."""
    if (pg := _own_group(group, "all_gather_coalesced")) is None:
        return None
    _check_tensor_list(input_tensor_list, "input_tensor_list")
    _check_same_dtype(input_tensor_list)
    if not isinstance(output_tensor_lists, list):
        raise TypeError("Invalid function argument: output_tensor_lists should be a list")
    for outputs in output_tensor_lists:
        _check_tensor_list(outputs, "output_tensor_lists")
        _check_same_dtype(outputs)
    work = pg.allgather_coalesced(output_tensor_lists, input_tensor_list, _options.AllgatherOptions(asyncOp=async_op))
    return work.get_future() if async_op else None


def _check_list_for_rank(rank: int, dst: int, gather_list) -> None:
    if rank == dst and not gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if rank != dst and gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")


def gather(
    tensor: _Tensor,
    gather_list: list[_Tensor] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Gathers the tensors of all ranks, which have one shape, into a list at one rank, by default rank 0."""
    _check_single_tensor(tensor, "tensor")
    if gather_list:
        _check_tensor_list(gather_list, "gather_list")
    gather_list = gather_list or []
    _check_same_dtype(tensor, gather_list)
    if (pg := _own_group(group, "gather")) is None:
        return None
    root = _canonicalize_group_rank(pg, 0 if dst is None and group_dst is None else dst, group_dst)
    _check_list_for_rank(pg.rank(), root, gather_list)
    opts = _options.GatherOptions(asyncOp=async_op, rootRank=root)
    return _finish(pg.gather([gather_list] if root == pg.rank() else [], [tensor], opts), async_op)


def gather_single(
    tensor: _Tensor,
    gather_tensor: _Tensor | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Gathers the tensors of all ranks into one tensor at one rank, by default rank 0."""
    _check_single_tensor(tensor, "tensor")
    if (pg := _own_group(group, "gather_single")) is None:
        return None
    root = _canonicalize_group_rank(pg, 0 if dst is None and group_dst is None else dst, group_dst)
    if root == pg.rank():
        if gather_tensor is None:
            raise ValueError("gather_tensor must be specified on the destination rank")
        _check_single_tensor(gather_tensor, "gather_tensor")
        _check_same_dtype(tensor, gather_tensor)
    return _finish(
        pg.gather_single(gather_tensor, tensor, _options.GatherOptions(asyncOp=async_op, rootRank=root)), async_op
    )


def gather_into_tensor(
    tensor: _Tensor,
    gather_tensor: _Tensor | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Same as gather_single()."""
    return gather_single(tensor, gather_tensor, dst, group, async_op, group_dst)


def scatter(
    tensor: _Tensor,
    scatter_list: list[_Tensor] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Copies one tensor of a list at one rank, by default rank 0, to each rank's tensor."""
    _check_single_tensor(tensor, "tensor")
    if scatter_list:
        _check_tensor_list(scatter_list, "scatter_list")
    scatter_list = scatter_list or []
    _check_same_dtype(tensor, scatter_list)
    if (pg := _own_group(group, "scatter")) is None:
        return None
    root = _canonicalize_group_rank(pg, 0 if src is None and group_src is None else src, group_src)
    if root == pg.rank() and not scatter_list:
        raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    if root != pg.rank() and scatter_list:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    opts = _options.ScatterOptions(asyncOp=async_op, rootRank=root)
    return _finish(pg.scatter([tensor], [scatter_list] if scatter_list else [], opts), async_op)


def reduce_scatter(
    output: _Tensor,
    input_list: list[_Tensor],
    op=ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Reduces a list of tensors over all ranks, and gives each rank the tensor at its position."""
    _check_single_tensor(output, "output")
    _check_tensor_list(input_list, "input_list")
    _check_same_dtype(output, input_list)
    if (pg := _own_group(group, "reduce_scatter")) is None:
        return None
    opts = _options.ReduceScatterOptions(asyncOp=async_op, reduceOp=op)
    return _finish(pg.reduce_scatter([output], [input_list], opts), async_op)


def reduce_scatter_single(
    output: _Tensor,
    input: _Tensor,
    op=ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,  # noqa: A002
) -> Work | None:
    """Reduces a tensor over all ranks, and gives each rank one part of equal size."""
    _check_single_tensor(output, "output")
    _check_single_tensor(input, "input")
    if (pg := _own_group(group, "reduce_scatter_single")) is None:
        return None
    opts = _options.ReduceScatterOptions(asyncOp=async_op, reduceOp=op)
    return _finish(pg.reduce_scatter_single(output, input, opts), async_op)


def reduce_scatter_tensor(
    output: _Tensor,
    input: _Tensor,
    op=ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,  # noqa: A002
) -> Work | None:
    """Same as reduce_scatter_single()."""
    return reduce_scatter_single(output, input, op, group, async_op)


_reduce_scatter_base = reduce_scatter_tensor


def all_to_all_single(
    output: _Tensor,
    input: _Tensor,  # noqa: A002
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Sends one part of a tensor to each rank and receives one part from each, along dimension 0."""
    if (pg := _own_group(group, "all_to_all_single")) is None:
        return None
    _check_single_tensor(output, "output")
    _check_single_tensor(input, "input")
    _check_same_dtype(output, input)
    opts = _options.AllToAllOptions(asyncOp=async_op)
    return _finish(
        pg.all_to_all_single(output, input, output_split_sizes or [], input_split_sizes or [], opts), async_op
    )


def all_to_all(
    output_tensor_list: list[_Tensor],
    input_tensor_list: list[_Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Sends one tensor of a list to each rank and receives one tensor from each. The sizes may differ."""
    if (pg := _own_group(group, "all_to_all")) is None:
        return None
    _check_tensor_list(output_tensor_list, "output_tensor_list")
    _check_tensor_list(input_tensor_list, "input_tensor_list")
    _check_same_dtype(output_tensor_list, input_tensor_list)
    return _finish(
        pg.alltoall(output_tensor_list, input_tensor_list, _options.AllToAllOptions(asyncOp=async_op)), async_op
    )


def barrier(
    group: ProcessGroup | None = None,
    async_op: bool = False,
    device_ids: list[int] | None = None,
    timeout: timedelta | None = None,
) -> Work | None:
    """Waits until all ranks have called it and this session's earlier calls are executed.

    Waits in this process, or with ``async_op=True`` in ``Work.wait()``. ``device_ids`` has no effect. `timeout` replaces
    the group's timeout only if it is shorter.

    Raises:
        RuntimeError: a rank was lost, or is missing after the timeout; the error names it.
    """
    if (pg := _own_group(group, "barrier")) is None:
        return None
    if timeout is not None:
        check_timeout(timeout)
        if not async_op:
            pg.barrier(_options.BarrierOptions()).wait(timeout)
            return None
    work = pg.barrier(_options.BarrierOptions(asyncOp=async_op))
    if async_op:
        return work
    work.wait()
    return None


def monitored_barrier(
    group: ProcessGroup | None = None, timeout: timedelta | float | None = None, wait_all_ranks: bool = False
) -> None:
    """Waits in this process until all ranks have called it. After the timeout rank 0 names the first rank that has not.

    Args:
        timeout: by default that of the group.
        wait_all_ranks: name all ranks that are missing.

    Raises:
        RuntimeError: ranks are missing; the group is aborted on all ranks.
    """
    if _rank_not_in_group(group):
        _warn_not_in_group("monitored_barrier")
        return
    if isinstance(timeout, float):
        warnings.warn(
            f"Please specify timeout arg as a timedelta. Converting current value of {timeout} assuming it represents seconds",
            stacklevel=2,
        )
        timeout = timedelta(seconds=timeout)
    if timeout is not None:
        check_timeout(timeout)
    (group or _get_default_group()).monitored_barrier(timeout, wait_all_ranks)


@contextlib.contextmanager
def record_comm(name: str) -> Iterator[None]:
    """Has no effect: the engine's profiler names collectives by their operators and lines."""
    yield


__all__ = [
    "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_single", "all_reduce", "all_reduce_coalesced",
    "all_to_all", "all_to_all_single", "barrier", "broadcast", "gather", "gather_into_tensor", "gather_single",
    "monitored_barrier", "record_comm", "reduce", "reduce_scatter", "reduce_scatter_single", "reduce_scatter_tensor", "scatter",
]  # fmt: skip
