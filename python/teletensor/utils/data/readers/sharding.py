"""The share of a list that belongs to the calling rank and worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .... import _default_group
from .._workers.info import get_worker_info


def ranks(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """The rank and the number of ranks: as given, else of the default process group, else 0 and 1.

    Raises:
        ValueError: only one of them is given, or the rank is out of range.
    """
    if (rank is None) != (world_size is None):
        raise ValueError(f"expected both rank and world_size, or neither, got {rank} and {world_size}")
    if rank is None or world_size is None:
        group = _default_group.find()
        return (0, 1) if group is None else (group.rank(), group.size())
    if not 0 <= rank < world_size:
        raise ValueError(f"expected a rank in [0, {world_size}), got {rank}")
    return rank, world_size


def share(items: Sequence[Any], rank: int, world_size: int) -> list[Any]:
    """Every n-th item, where n is the number of ranks times the number of the loader's workers."""
    info = get_worker_info()
    worker, workers = (0, 1) if info is None else (info.id, info.num_workers)
    return list(items[rank * workers + worker :: world_size * workers])
