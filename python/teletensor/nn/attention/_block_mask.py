"""BlockMask: which blocks of attention scores are computed, and which of their elements are masked."""

from __future__ import annotations

import itertools
import math
from typing import Any, Callable

from ... import _C
from ..._C import Tensor
from ..._lazy import set_module

DEFAULT_BLOCK_SIZE = 128
_TENSORS = (
    "kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices", "q_num_blocks", "q_indices", "full_q_num_blocks",
    "full_q_indices",
)  # fmt: skip


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """A mask function that masks nothing."""
    return batch.new_ones(size=(), dtype=_C.bool, device=batch.device)


def sliced_mask_error(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The mask function of a sliced BlockMask: raises RuntimeError."""
    raise RuntimeError(
        "Cannot use mask_mod from a sliced BlockMask. When you slice a BlockMask using [], the mask_mod attribute is reset. "
        "You must set it from the original BlockMask's mask_mod."
    )


def to_dense(num_blocks: Tensor, indices: Tensor, columns: int) -> Tensor:
    """1 at the first ``num_blocks`` indices of each row, else 0; int32."""
    count = indices.shape[-1]
    used = _C.torch.arange(count, device=indices.device) < num_blocks.unsqueeze(-1)
    valid = _C.torch.where(used, indices, columns).to(_C.int64)  # entries that are not used are in an additional column
    dense = _C.torch.zeros(*indices.shape[:-1], columns + 1, dtype=_C.int32, device=indices.device)
    return dense.scatter(-1, valid, 1)[..., :columns].contiguous()


def to_ordered(dense: Tensor) -> tuple[Tensor, Tensor]:
    """(the number of nonzero entries of each row, and all column indices with those of nonzero entries first); int32.
    """
    dense = dense.to(_C.int32)
    order = _C.torch.argsort(dense, dim=-1, descending=True, stable=True)
    return dense.sum(-1).to(_C.int32), order.to(_C.int32)


def _transposed(num_blocks: Tensor | None, indices: Tensor | None, columns: int) -> tuple[Tensor | None, Tensor | None]:
    return (None, None) if indices is None else to_ordered(to_dense(num_blocks, indices, columns).transpose(-2, -1))


def _cropped(num_blocks: Tensor | None, indices: Tensor | None, rows: int, columns: int) -> tuple[Tensor | None, Tensor | None]:
    if indices is None:
        return None, None
    indices, num_blocks = indices[:, :, :rows, :columns], num_blocks[:, :, :rows]
    used = _C.torch.arange(indices.shape[-1], device=indices.device) < num_blocks[..., None]
    return (used & (indices < columns)).sum(-1).to(_C.int32), indices


class BlockMask:
    """A mask of attention scores by blocks of queries and keys.

    ``kv_indices[b, h, i, :kv_num_blocks[b, h, i]]`` are the indices of the blocks of keys that ``mask_mod`` masks
    partly for block i of the queries. The full blocks are those without masked elements. Other blocks are masked. The
    tensors with q in their names contain the transposed lists: the blocks of queries for each block of keys.
    """

    def __init__(
        self, seq_lengths: tuple[int, int], kv_num_blocks: Tensor, kv_indices: Tensor, full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None, q_num_blocks: Tensor | None, q_indices: Tensor | None, full_q_num_blocks: Tensor | None,
        full_q_indices: Tensor | None, BLOCK_SIZE: tuple[int, int] = (DEFAULT_BLOCK_SIZE,) * 2, mask_mod: Callable = noop_mask,
        *, dq_write_order: None = None, dq_write_order_full: None = None, dq_kv_order: None = None, dq_kv_order_spt: None = None,
    ):  # fmt: skip # noqa: N803 - PyTorch's names
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        if (full_q_num_blocks is None) != (full_q_indices is None):
            raise AssertionError("full_q_num_blocks and full_q_indices must be both provided or omitted")
        _reject_write_order(dq_write_order, dq_write_order_full, dq_kv_order, dq_kv_order_spt)
        self.seq_lengths, self.BLOCK_SIZE, self.mask_mod = seq_lengths, BLOCK_SIZE, mask_mod
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices
        self.dq_write_order = self.dq_write_order_full = self.dq_kv_order = self.dq_kv_order_spt = None

    @classmethod
    def from_kv_blocks(
        cls, kv_num_blocks: Tensor, kv_indices: Tensor, full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None, BLOCK_SIZE: int | tuple[int, int] = DEFAULT_BLOCK_SIZE,
        mask_mod: Callable | None = None, seq_lengths: tuple[int, int] | None = None, compute_q_blocks: bool = True,
        *, dq_write_order: None = None, dq_write_order_full: None = None, dq_kv_order: None = None,
    ) -> BlockMask:  # fmt: skip # noqa: N803 - PyTorch's names
        """A mask from the blocks of keys for each block of queries; the lists for blocks of keys are computed."""
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        _reject_write_order(dq_write_order, dq_write_order_full, dq_kv_order, None)
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        lengths = seq_lengths or (kv_indices.shape[-2] * size[0], kv_indices.shape[-1] * size[1])
        columns = -(-lengths[1] // size[1])
        q_blocks: list[Tensor | None] = [None] * 4
        if compute_q_blocks:
            q_blocks = [*_transposed(kv_num_blocks, kv_indices, columns), *_transposed(full_kv_num_blocks, full_kv_indices, columns)]
        return cls(
            lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, *q_blocks, size, mask_mod or noop_mask
        )

    def as_tuple(self, flatten: bool = True) -> tuple:
        """The attributes, with the sizes as separate numbers if ``flatten``."""
        lengths = self.seq_lengths if flatten else (self.seq_lengths,)
        block = self.BLOCK_SIZE if flatten else (self.BLOCK_SIZE,)
        return (*lengths, *(getattr(self, n) for n in _TENSORS), None, None, None, None, *block, self.mask_mod)

    @property
    def shape(self) -> tuple[int, ...]:
        """(batch, heads, queries, keys)."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def _from_blocks(self, kv: tuple, full: tuple, lengths: tuple[int, int], mask_mod: Callable) -> BlockMask:
        return BlockMask.from_kv_blocks(
            *kv, *full, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=mask_mod, seq_lengths=lengths, compute_q_blocks=self.q_indices is not None
        )

    def __getitem__(self, index: Any) -> BlockMask:
        """Selects batches, heads and blocks of queries. The result's mask_mod must be set before use, as in PyTorch."""
        index = index if isinstance(index, tuple) else (index,)
        if len(index) > 3:
            raise IndexError("BlockMask indexing supports batch, head, and Q-block dimensions")
        padded = (*index, slice(None), slice(None), slice(None))[:3]
        kept = tuple(_as_slice(i, n) if isinstance(i, int) else i for i, n in zip(padded, self.kv_num_blocks.shape[:3]))
        kv = self.kv_num_blocks[kept], self.kv_indices[kept]
        full = (None, None) if self.full_kv_indices is None else (self.full_kv_num_blocks[kept], self.full_kv_indices[kept])
        queries = self._query_length(kept[2], kv[1].shape[-2])
        return self._from_blocks(kv, full, (queries, self.seq_lengths[1]), sliced_mask_error)

    def _query_length(self, index: Any, count: int) -> int:
        """The number of queries in selected blocks, of which the last may be incomplete."""
        size = self.BLOCK_SIZE[0]
        if not isinstance(index, slice):
            return count * size
        blocks = range(self.kv_num_blocks.shape[-1])[index]
        return sum(min(size, self.seq_lengths[0] - block * size) for block in blocks)

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """The mask of the first queries and keys."""
        rows, columns = -(-new_q_len // self.BLOCK_SIZE[0]), -(-new_kv_len // self.BLOCK_SIZE[1])
        kv = _cropped(self.kv_num_blocks, self.kv_indices, rows, columns)
        full = _cropped(self.full_kv_num_blocks, self.full_kv_indices, rows, columns)
        return self._from_blocks(kv, full, (new_q_len, new_kv_len), self.mask_mod)

    def numel(self) -> int:
        """The number of scores."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """The percentage of blocks that are masked. Waits for the engine."""
        total = math.prod(self.kv_num_blocks.shape[:-1])
        for length, size in zip(self.seq_lengths, self.BLOCK_SIZE):
            total *= -(-length // size)
        computed = self.kv_num_blocks.sum()
        if self.full_kv_num_blocks is not None:
            computed = computed + self.full_kv_num_blocks.sum()
        return 100 * (1 - computed.item() / total)

    def to_dense(self) -> Tensor:
        """1 for each block that is not masked, else 0; int32."""
        dense = to_dense(self.kv_num_blocks, self.kv_indices, self.kv_indices.shape[-1])
        if self.full_kv_indices is None:
            return dense
        return dense | to_dense(self.full_kv_num_blocks, self.full_kv_indices, self.full_kv_indices.shape[-1])

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """A picture of the blocks of each batch and head, up to a limit. Waits for the engine."""
        dense = self.to_dense().numpy(force=True)
        *batches, rows, columns = dense.shape
        most = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        steps = [max(1, -(-n // m)) if m > 0 else 1 for n, m in zip((rows, columns), most)]
        found = []
        for i, batch in enumerate(itertools.product(*map(range, batches))):
            if i == limit:
                found += [
                    "...", "To print out more, set BlockMask.to_string(limit=N)",
                    "You can also index (BlockMask[batch, head]) to choose a specific batch or head",
                ]  # fmt: skip
                break
            found.append(f"{batch}\n" + _picture(dense[batch], *steps))
        return "\n".join(found)

    def to(self, device) -> BlockMask:
        """A copy on another device."""
        moved = [None if (t := getattr(self, n)) is None else t.to(device) for n in _TENSORS]
        return BlockMask(self.seq_lengths, *moved, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=self.mask_mod)

    def __str__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string().strip()}\n)"

    def __repr__(self) -> str:
        rows = [f"    {n}={None if getattr(self, n) is None else getattr(self, n).shape},\n" for n in _TENSORS]
        return (
            f"BlockMask(\n{''.join(rows)}    BLOCK_SIZE={self.BLOCK_SIZE},\n    shape={self.shape},\n"
            f"    sparsity={self.sparsity():.2f}%,\n    mask_mod={getattr(self.mask_mod, '__name__', self.mask_mod)}\n)"
        )


def _as_slice(i: int, n: int) -> slice:
    return slice(i + n, i + n + 1) if -n <= i < 0 else slice(i, i + 1)


def _picture(dense: Any, row_step: int, column_step: int) -> str:
    """A line per row of blocks: full where all blocks are computed, shaded where some are."""
    lines = ""
    for r in range(0, dense.shape[0], row_step):
        for c in range(0, dense.shape[1], column_step):
            share = dense[r : r + row_step, c : c + column_step].mean()
            lines += ("█" if share == 1 else " " if share == 0 else "░") * 2
        lines += "\n"
    return lines


def _reject_write_order(*values: Any) -> None:
    if any(value is not None for value in values):
        raise NotImplementedError("BlockMask: dq_write_order and dq_kv_order describe a kernel of PyTorch's that the engine does not have")


set_module("teletensor.nn.attention.flex_attention", BlockMask)
