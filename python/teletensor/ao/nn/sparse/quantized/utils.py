"""torch.ao.nn.sparse.quantized.utils: the block size that conversions to dynamic layers use."""

from __future__ import annotations

import threading

__all__ = ["LinearBlockSparsePattern"]

_PATTERNS = ((1, 4), (8, 1))


class LinearBlockSparsePattern:
    """In a ``with`` block, dynamic layers are made with this block size. One thread at a time is in such a block."""

    rlock = threading.RLock()
    row_block_size, col_block_size = _PATTERNS[0]

    def __init__(self, row_block_size: int = 1, col_block_size: int = 4):
        if (row_block_size, col_block_size) not in _PATTERNS:
            raise AssertionError(f"Invalid linear block sparse pattern: row_block_size={row_block_size}, col_block_size={col_block_size}")
        self.size = (row_block_size, col_block_size)

    def __enter__(self) -> None:
        cls = LinearBlockSparsePattern
        cls.rlock.acquire()
        self.previous = cls.block_size()
        cls.row_block_size, cls.col_block_size = self.size

    def __exit__(self, *exc: object) -> None:
        cls = LinearBlockSparsePattern
        cls.row_block_size, cls.col_block_size = self.previous
        cls.rlock.release()

    @staticmethod
    def block_size() -> tuple[int, int]:
        """The rows and columns of a block."""
        return LinearBlockSparsePattern.row_block_size, LinearBlockSparsePattern.col_block_size
