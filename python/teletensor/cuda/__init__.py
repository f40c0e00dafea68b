"""torch.cuda's names. GPUs are the engine's: what it has is what is available."""

from __future__ import annotations

from .. import _connection
from . import amp  # noqa: F401
from .graphs import CUDAGraph, graph, is_current_stream_capturing  # noqa: F401


def device_count() -> int:
    """How many GPUs the engine has."""
    return sum(d["device"].startswith("cuda") for d in _connection.connection().engine()["devices"])


def is_available() -> bool:
    """Whether the engine has a GPU."""
    return device_count() > 0


def synchronize(device=None) -> None:
    """Waits until everything issued so far has been executed."""
    _connection.synchronize()


def manual_seed(seed: int) -> None:
    """The session has one generator for all devices."""
    from .._random import manual_seed as set_seed

    set_seed(seed)


manual_seed_all = manual_seed


def empty_cache() -> None:
    """Nothing: the engine's pools belong to all its sessions (``teletensor empty-cache``)."""
