"""all_reduce of sparse tensors. Each function runs on all ranks."""

from __future__ import annotations

import teletensor as torch
import teletensor.distributed as dist


def matrix(rank: int, elements: int | None = None, dtype: torch.dtype = torch.float32, dense: int = 0) -> torch.Tensor:
    """An uncoalesced tensor with another number of elements on each rank, some of them at equal indices."""
    count = 2 * rank if elements is None else elements
    indices = torch.tensor([[i % 3 for i in range(count)], [(i * i + rank) % 4 for i in range(count)]]).reshape(2, count)
    values = torch.arange(1, count * 2**dense + 1).reshape(count, *[2] * dense).to(dtype) * (rank + 1)
    return torch.sparse_coo_tensor(indices, values, (3, 4, *[2] * dense))


def sums(rank: int, size: int) -> list:
    """Whether the sums of several tensors are right, and equal on all ranks."""
    right = []
    for options in ({}, {"dtype": torch.float64, "dense": 2}, {"dtype": torch.int64}, {"elements": 0}, {"dtype": torch.complex64}):
        own = matrix(rank, **options)
        expected = sum(matrix(r, **options).to_dense() for r in range(size))
        dist.all_reduce(own)
        right.append(own.is_coalesced() and own.dtype is expected.dtype and torch.equal(own.to_dense(), expected))
    work = dist.all_reduce(own := matrix(rank), async_op=True)
    right.append(work.wait() and work.is_completed() and work.result()[0] is own and own.to_dense().sum().item() > -1)
    group = dist.new_group(list(range(size))[::-1][:2])
    if group is not None and rank >= size - 2:
        dist.all_reduce(own := matrix(rank), group=group)
        right.append(torch.equal(own.to_dense(), sum(matrix(r).to_dense() for r in range(max(size - 2, 0), size))))
    return right


def error_of(function) -> list:
    """The name and the text of the error that a call raises; empty if it raises none."""
    try:
        function()
    except Exception as error:  # noqa: BLE001 - returned
        return [type(error).__name__, str(error)]
    return []


def refused(rank: int, size: int) -> list:
    """The errors of calls that no rank starts, and of different sizes."""
    dense, rows = torch.eye(3), [torch.ones(2), torch.ones(1)]
    found = [
        error_of(lambda: dist.all_reduce(matrix(rank), dist.ReduceOp.MAX)),
        error_of(lambda: dist.all_reduce(matrix(rank), dist.ReduceOp.AVG)),
        error_of(lambda: dist.all_reduce(dense.to_sparse_csr())),
        error_of(lambda: dist.all_reduce(torch.nested.nested_tensor(rows, layout=torch.jagged))),
        error_of(lambda: dist.broadcast(dense.to_sparse(), 0)),
        error_of(lambda: dist.all_reduce(torch.eye(3 + rank).to_sparse())),
        error_of(lambda: dist.all_reduce(torch.ones(2, 2).to_sparse(1 + rank % 2))),
        error_of(lambda: dist.all_reduce(matrix(rank) * torch.ones(3, 4, requires_grad=rank == 1))),
        error_of(lambda: dist.group.WORLD.allreduce([matrix(rank), dense]).wait()),
    ]
    dist.all_reduce(own := torch.ones(2).to_sparse())  # the group remains usable
    return [*found, own.to_dense().tolist()]
