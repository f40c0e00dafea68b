"""context_parallel: scaled_dot_product_attention over sequences that are divided among the ranks of a mesh."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .... import _C
from ...._C import Tensor
from ...._grad_mode import no_grad
from ....nn import dot_product_attention as attention
from ...device_mesh import DeviceMesh
from ._ring import Layout, RingAttention

__all__ = ["context_parallel", "context_parallel_unshard", "set_rotate_method"]


@dataclass
class _ContextParallelOptions:
    """Options of all contexts that are entered afterwards. They must be the same on all ranks.

    Args:
        enable_load_balance: whether each rank gets one chunk from the beginning and one from the end of a sequence, which
            gives all ranks the same work if the attention is causal.
        rotate_method: "allgather" or "alltoall"; see set_rotate_method().
    """

    enable_load_balance: bool = True
    rotate_method: str = "allgather"


_cp_options = _ContextParallelOptions()


def set_rotate_method(rotate_method: str) -> None:
    """Sets how keys and values reach the other ranks, in contexts that are entered afterwards.

    Args:
        rotate_method: "allgather", the default: all at once, which takes the memory of all ranks' keys and values.
            "alltoall": from rank to rank, while the engine computes the attention to the previous ones.
    """
    if rotate_method not in ("allgather", "alltoall"):
        raise NotImplementedError(f"Context Parallel does not support using {rotate_method} for kv shards rotation")
    _cp_options.rotate_method = rotate_method


def _chunks_of_ranks(ranks: int, is_balanced: bool) -> list[list[int]]:
    """The chunks of a sequence that each rank has, in order."""
    if not is_balanced:
        return [[rank] for rank in range(ranks)]
    return [[rank, 2 * ranks - 1 - rank] for rank in range(ranks)]


def _shard(buffer: Tensor, dim: int, ranks: int, rank: int, is_balanced: bool) -> Tensor:
    """This rank's part of a tensor, as a copy."""
    chunks = _chunks_of_ranks(ranks, is_balanced)
    count = sum(map(len, chunks))
    if buffer.shape[dim] % count:
        raise ValueError(
            f"[context_parallel] expected a sequence length that is divisible by {count}, got {buffer.shape[dim]} in dimension "
            f"{dim} of a buffer of shape {tuple(buffer.shape)}"
        )
    pieces = buffer.detach().chunk(count, dim)
    return _C.torch.cat([pieces[i] for i in chunks[rank]], dim)


def _checked_buffers(buffers, buffer_seq_dims) -> tuple[list[Tensor], list[int]]:
    buffers, dims = list(buffers or ()), list(buffer_seq_dims or ())
    if len(buffers) != len(dims):
        raise ValueError("`seq_dims` must have the same number of elements as `buffers`.")
    return buffers, dims


@contextlib.contextmanager
def context_parallel(
    mesh: DeviceMesh, *, buffers: Sequence[Tensor] | None = None, buffer_seq_dims: Sequence[int] | None = None,
    no_restore_buffers: set[Tensor] | None = None,
) -> Iterator[None]:  # fmt: skip
    """Within the context, ``scaled_dot_product_attention`` computes attention over the sequences of all ranks.

    Each rank passes its part of the queries, keys and values, of sizes (batch, heads, sequence / ranks, features), and gets
    the result for its queries. Gradients are those of attention over the whole sequence. Everything else that is computed
    in the context must treat positions of the sequence alone, such as linear layers and normalisation.

    Args:
        mesh: a mesh with one dimension, whose ranks all enter the context and make the same calls.
        buffers: tensors that have a sequence dimension, such as inputs, labels and position embeddings. In the context,
            each has only this rank's part, and afterwards its former values; read gradients of buffers in the context.
        buffer_seq_dims: the dimension of the sequence, per buffer. Its length must be divisible by the number of ranks, or
            by twice the number with load balancing.
        no_restore_buffers: the buffers that keep this rank's part after the context.

    Raises:
        ValueError: a sequence cannot be divided, or `no_restore_buffers` contains other tensors.
        RuntimeError: a buffer requires a gradient when the context is entered or left.
        NotImplementedError: in the context, attention with a mask or dropout.
    """
    buffers, dims = _checked_buffers(buffers, buffer_seq_dims)
    kept = list(no_restore_buffers or ())
    if any(all(b is not buffer for buffer in buffers) for b in kept):
        raise ValueError("`no_restore_buffers` must be a subset of `buffers`.")
    _check_not_requiring_grad(buffers)
    group = mesh.get_group()
    layout = Layout(group, _cp_options.enable_load_balance, _cp_options.rotate_method)
    with no_grad():
        parts = [
            _shard(buffer, dim, group.size(), group.rank(), layout.is_balanced)
            for buffer, dim in zip(buffers, dims, strict=True)
        ]
        originals = [buffer.detach() for buffer in buffers]
        for buffer, part in zip(buffers, parts, strict=True):
            buffer.set_(part)
    before, attention.over_ranks = attention.over_ranks, _AttentionOverRanks(layout)
    restored = [(b, o) for b, o in zip(buffers, originals, strict=True) if all(b is not k for k in kept)]
    try:
        yield
    finally:
        attention.over_ranks = before
        with no_grad():
            for buffer, original in restored:
                if not buffer.requires_grad:
                    buffer.set_(original)
    _check_not_requiring_grad([buffer for buffer, _ in restored])


def _check_not_requiring_grad(buffers: list[Tensor]) -> None:
    if any(buffer.requires_grad for buffer in buffers):
        raise RuntimeError("cannot resize variables that require grad")


class _AttentionOverRanks:
    """scaled_dot_product_attention of tensors that are divided among the ranks."""

    def __init__(self, layout: Layout):
        self._layout = layout

    def __call__(
        self, query: Tensor, key: Tensor, value: Tensor, attn_mask, dropout_p: float, is_causal: bool, scale
    ) -> Tensor:
        if attn_mask is not None or dropout_p != 0.0:
            raise NotImplementedError("[context_parallel] attention with attn_mask or dropout is not supported")
        for t in (query, key, value):
            if t.dim() != 4 or t.shape[:2] != query.shape[:2]:
                raise ValueError(
                    "[context_parallel] expected query, key and value of sizes (batch, heads, sequence, features), got "
                    f"{tuple(query.shape)}, {tuple(key.shape)} and {tuple(value.shape)}"
                )
        rows, columns = query.shape[2], key.shape[2]
        if is_causal and rows != columns:
            raise NotImplementedError("is_causal requires the same query and context sequence lengths")
        if is_causal and self._layout.is_balanced and rows % 2:
            raise ValueError(f"[context_parallel] expected an even sequence length per rank, got {rows}")
        factor = 1 / math.sqrt(query.shape[-1]) if scale is None else float(scale)
        return RingAttention.apply(self._layout, query, key, value, bool(is_causal), factor)


def context_parallel_unshard(
    mesh: DeviceMesh, buffers: Sequence[Tensor], seq_dims: Sequence[int], load_balancer=None
) -> list[Tensor]:
    """Gathers tensors that are divided among the ranks as in a context of context_parallel(). All ranks must call it.

    Args:
        seq_dims: the dimension of the sequence, per tensor.
        load_balancer: None; other arrangements are not supported.

    Returns:
        The whole tensors, without history.
    """
    if load_balancer is not None:
        raise NotImplementedError("[context_parallel_unshard] load_balancer is not supported")
    group, (buffers, dims) = mesh.get_group(), _checked_buffers(buffers, seq_dims)
    chunks = _chunks_of_ranks(group.size(), _cp_options.enable_load_balance)
    order = [chunk for of_rank in chunks for chunk in of_rank]
    result = []
    with no_grad():
        for buffer, dim in zip(buffers, dims, strict=True):
            if buffer.shape[dim] % len(chunks[0]):
                raise ValueError(
                    f"[context_parallel_unshard] expected an even sequence length per rank, got {buffer.shape[dim]}"
                )
            part = buffer.detach().contiguous()
            every = _C.torch.empty((group.size(), *part.shape), dtype=part.dtype, device=part.device)
            group.all_gather_single(every, part).wait()
            pieces = [piece for whole in every for piece in whole.chunk(len(chunks[0]), dim)]
            result.append(_C.torch.cat([pieces[order.index(i)] for i in range(len(order))], dim))
    return result
