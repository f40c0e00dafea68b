"""torch.cuda.nccl: collectives of tensors on several GPUs of one process. Use torch.distributed or a DeviceMesh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._not_implemented import not_implemented

__all__ = ["all_gather", "all_reduce", "broadcast", "reduce", "reduce_scatter"]  # noqa: F822 - defined below


def is_available(tensors: Sequence[Any]) -> bool:
    """Returns False: the functions of this module are not implemented."""
    return not isinstance(tensors, Sequence)


not_implemented(
    globals(), "use torch.distributed, whose collectives the engines compute", "all_gather all_reduce broadcast init_rank reduce "
    "reduce_scatter unique_id version",
)  # fmt: skip
