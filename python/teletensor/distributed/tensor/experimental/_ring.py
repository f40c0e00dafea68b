"""Ring attention: attention over sequences of which each rank of a group has a part.

Each rank computes the attention of its queries to the keys and values of all ranks, block by block, and merges the blocks
by the logarithm of their sums of exponentials. Keys and values are moved while the previous block is computed.

Source: H. Liu et al., "Ring Attention with Blockwise Transformers for Near-Infinite Context", 2023.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .... import _C
from ...._C import Tensor
from ....autograd import Function
from ....autograd.function import once_differentiable
from ..._options import BroadcastOptions, ReduceScatterOptions
from ..._process_group import ProcessGroup
from ..._reduce_op import ReduceOp

_TAG = (1 << 32) - 4  # tag of ring attention's messages; users cannot choose it
_ASYNC = BroadcastOptions(asyncOp=True)
_SEQUENCE = 2  # the dimension of queries, keys and values that is divided


@dataclass(frozen=True)
class Layout:
    """How a sequence is divided among the ranks.

    Args:
        is_balanced: the sequence has two chunks per rank, and rank r has chunks r and 2 * size - 1 - r, so that all ranks do
            the same work for causal attention. Otherwise rank r has chunk r of `size` chunks.
        method: "allgather" gathers all keys and values at once; "alltoall" passes them from rank to rank.
    """

    group: ProcessGroup
    is_balanced: bool
    method: str


@dataclass(frozen=True)
class _Block:
    """The part of the attention to one rank's keys that is not masked: a range of the queries and of the keys."""

    first_query: int
    end_key: int
    is_causal: bool


def _block(layout: Layout, source: int, rows: int, columns: int, is_causal: bool) -> _Block | None:
    """The part of this rank's attention to the keys of a rank that is not masked; None if all is masked."""
    rank = layout.group.rank()
    if not is_causal:
        return _Block(0, columns, False)
    if source == rank:
        return _Block(0, columns, True)
    if not layout.is_balanced:
        return _Block(0, columns, False) if source < rank else None
    # With two chunks per rank, the first chunk of an earlier rank is before both chunks of this rank, and its last chunk
    # is after them. Both chunks of a later rank are between those of this rank.
    return _Block(0, columns // 2, False) if source < rank else _Block(rows // 2, columns, False)


def _flat(a: Tensor, b: Tensor) -> Tensor:
    return _C.torch.cat([a.reshape(-1), b.reshape(-1)])


def _unflat(flat: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """The inverse of _flat, for tensors of the given shapes."""
    return flat[: a.numel()].view(a.shape), flat[a.numel() :].view(b.shape)


class _Pass:
    """Sends tensors to the next rank, and receives those of the previous rank."""

    def __init__(self, group: ProcessGroup):
        self._group = group
        self._next, self._previous = (group.rank() + 1) % group.size(), (group.rank() - 1) % group.size()

    def start(self, tensor: Tensor) -> None:
        self._received = _C.torch.empty_like(tensor)
        self._works = [
            self._group.recv([self._received], self._previous, _TAG, _ASYNC),
            self._group.send([tensor], self._next, _TAG, _ASYNC),
        ]

    def finish(self) -> Tensor:
        """The engine waits for both; returns the previous rank's tensor."""
        for work in self._works:
            work.wait()
        return self._received


def _rotated(layout: Layout, mine: Tensor) -> Iterator[tuple[int, Tensor]]:
    """Yields the tensor of each rank, and the rank, beginning with this one and going backwards.

    The next tensor is moved while the caller computes with the current one.
    """
    rank, size = layout.group.rank(), layout.group.size()
    if layout.method == "allgather":
        every = _C.torch.empty((size, *mine.shape), dtype=mine.dtype, device=mine.device)
        work = layout.group.all_gather_single(every, mine) if size > 1 else None
        yield rank, mine
        if work is not None:
            work.wait()
        for step in range(1, size):
            yield (rank - step) % size, every[(rank - step) % size]
        return
    ring = _Pass(layout.group)
    for step in range(size):
        if step + 1 < size:
            ring.start(mine)
        yield (rank - step) % size, mine
        if step + 1 < size:
            mine = ring.finish()


def _merge(out: Tensor, logsumexp: Tensor, block_out: Tensor, block_logsumexp: Tensor) -> tuple[Tensor, Tensor]:
    """The attention to the keys of two blocks, from the attention to each and the logarithms of the sums."""
    total = _C.torch.logaddexp(logsumexp, block_logsumexp)
    merged = out * (logsumexp - total).exp().unsqueeze(-1) + block_out * (block_logsumexp - total).exp().unsqueeze(-1)
    return merged, total


def _forward(layout: Layout, query: Tensor, key: Tensor, value: Tensor, is_causal: bool, scale: float):
    """Returns the attention of this rank's queries, and the logarithm of the sum of each query."""
    out = logsumexp = None
    for source, kv in _rotated(layout, _flat(key, value)):
        block = _block(layout, source, query.shape[_SEQUENCE], key.shape[_SEQUENCE], is_causal)
        if block is None:
            continue
        k, v = (t[:, :, : block.end_key] for t in _unflat(kv, key, value))
        q = query[:, :, block.first_query :]
        block_out, block_logsumexp = _C.ops.attention_forward(q, k, v, None, block.is_causal, scale)
        block_out = block_out.to(block_logsumexp.dtype)
        if out is None:
            out, logsumexp = block_out, block_logsumexp
        elif block.first_query == 0:
            out, logsumexp = _merge(out, logsumexp, block_out, block_logsumexp)
        else:
            out_part, logsumexp_part = (t[:, :, block.first_query :] for t in (out, logsumexp))
            merged = _merge(out_part, logsumexp_part, block_out, block_logsumexp)
            out_part.copy_(merged[0])
            logsumexp_part.copy_(merged[1])
    return out.to(query.dtype), logsumexp


class _GradientSum:
    """Sums the gradients that each rank computes for the keys and values of all ranks; each rank gets its own sum."""

    def __init__(self, layout: Layout, like: Tensor, dtype):
        self._layout, self._dtype, self._like = layout, dtype, like
        self._size = layout.group.size()
        self._ring = _Pass(layout.group)
        self._total: Tensor | None = None
        self._every = None
        if layout.method == "allgather":
            self._every = _C.torch.zeros((self._size, *like.shape), dtype=dtype, device=like.device)

    def add(self, source: int, gradient: Tensor | None) -> None:
        """Adds this rank's gradient for a rank's keys and values. Called for all ranks in the order of _rotated."""
        if self._every is not None:
            if gradient is not None:
                self._every[source].copy_(gradient)
            return
        if gradient is None:
            gradient = _C.torch.zeros_like(self._like, dtype=self._dtype)
        # The sum moves with the keys and values: it is now that of the ranks before this one.
        self._total = gradient if self._total is None else gradient + self._ring.finish()
        if self._size > 1:
            self._ring.start(self._total)

    def finish(self) -> Tensor:
        """Returns the sum for this rank's keys and values."""
        if self._size == 1:
            return self._every[0] if self._every is not None else self._total
        if self._every is None:
            return self._ring.finish()
        result = _C.torch.empty_like(self._like, dtype=self._dtype)
        options = ReduceScatterOptions(reduceOp=ReduceOp.SUM)
        self._layout.group.reduce_scatter_single(result, self._every.view(-1), options).wait()
        return result


def _padded(t: Tensor, length: int) -> Tensor:
    """Appends zeros along the sequence."""
    missing = length - t.shape[_SEQUENCE]
    if missing == 0:
        return t
    zeros = _C.torch.zeros((*t.shape[:_SEQUENCE], missing, *t.shape[_SEQUENCE + 1 :]), dtype=t.dtype, device=t.device)
    return _C.torch.cat([t, zeros], _SEQUENCE)


class RingAttention(Function):
    """Attention over a group; backward moves keys, values and their gradients in the same way."""

    @staticmethod
    def forward(
        ctx, layout: Layout, query: Tensor, key: Tensor, value: Tensor, is_causal: bool, scale: float
    ) -> Tensor:
        key, value = key.contiguous(), value.contiguous()
        out, logsumexp = _forward(layout, query, key, value, is_causal, scale)
        ctx.layout, ctx.is_causal, ctx.scale = layout, is_causal, scale
        ctx.save_for_backward(query, key, value, out, logsumexp)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor):
        layout, (query, key, value, out, logsumexp) = ctx.layout, ctx.saved_tensors
        rows, columns = query.shape[_SEQUENCE], key.shape[_SEQUENCE]
        mine, dtype = _flat(key, value), logsumexp.dtype
        query_grad = _C.torch.zeros_like(query, dtype=dtype)
        total = _GradientSum(layout, mine, dtype)
        for source, kv in _rotated(layout, mine):
            block = _block(layout, source, rows, columns, ctx.is_causal)
            if block is None:
                total.add(source, None)
                continue
            k, v = (t[:, :, : block.end_key] for t in _unflat(kv, key, value))
            g, q, o, sums = (t[:, :, block.first_query :] for t in (grad, query, out, logsumexp))
            dq, dk, dv = _C.ops.attention_backward(g, q, k, v, None, o, sums, block.is_causal, ctx.scale)
            query_grad[:, :, block.first_query :].add_(dq)
            total.add(source, _flat(_padded(dk, columns).to(dtype), _padded(dv, columns).to(dtype)))
        key_grad, value_grad = _unflat(total.finish(), key, value)
        return None, query_grad.to(query.dtype), key_grad.to(key.dtype), value_grad.to(value.dtype), None, None
