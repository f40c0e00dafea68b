"""LinearCrossEntropyOptions: how linear_cross_entropy divides a batch to save memory."""

from __future__ import annotations

import dataclasses
from typing import Any

__all__ = ["LinearCrossEntropyOptions"]

_POLICIES = ("auto", "accurate", "compact")


@dataclasses.dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """The logits are computed for parts of the batch, and computed again in the backward pass.

    Args:
        allow_retain_graph: has no effect: several backward passes are always possible.
        batch_chunk_size: the number of rows of a part.
        chunking_method: "aspect_ratio" or "aspect_ratio:n", where the size of a part is about the number of rows times
            features / classes / n; "auto": "aspect_ratio", unless batch_chunk_size is given.
        acc_policy: only "auto": sums are accumulated in float32 or float64.
        acc_dtype: only None.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None

    def __post_init__(self) -> None:
        if self.acc_policy not in _POLICIES:
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}; expected one of {', '.join(map(repr, _POLICIES))}")
        if self.acc_policy != "auto" or self.acc_dtype is not None:
            raise NotImplementedError("LinearCrossEntropyOptions: expected acc_policy='auto' and acc_dtype=None")
        method = self.chunking_method
        if method not in (None, "auto"):
            name, colon, factor = method.partition(":")
            if name != "aspect_ratio" or colon and not (factor.isdigit() and int(factor) > 0):
                raise ValueError(f"invalid chunking_method: {method!r}")
        size = self.batch_chunk_size
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size!r}")

    def rows_per_part(self, rows: int, features: int, classes: int) -> int:
        """The number of rows of a part of a batch. Raises ValueError if both options are given and they differ."""
        method, size = self.chunking_method, self.batch_chunk_size
        if method == "auto":
            method = None if size is not None else "aspect_ratio"
        if method is None:
            return max(1, min(size or rows, rows))
        factor = int(method.partition(":")[2] or 1)
        target = -(-rows // -(-classes // features))
        found = min((1 << (target - 1).bit_length()) // factor, rows)
        if size is not None and size != found:
            raise ValueError(
                f"batch_chunk_size (={size}) and chunking_method ('{method}') give different chunk sizes ({size} vs {found}); "
                "pass only one."
            )
        return max(1, found)
