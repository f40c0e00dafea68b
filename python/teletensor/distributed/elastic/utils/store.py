"""Exchanges between the members of a store."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from datetime import timedelta

from ..._errors import DistStoreError

__all__ = ["barrier", "get_all", "store_timeout", "synchronize"]

_NAMED_RANKS = 16  # at most this many missing ranks are named


@contextlib.contextmanager
def store_timeout(store, timeout: float) -> Iterator[None]:
    """Within the block the store's timeout is `timeout` seconds."""
    before = store.timeout
    store.set_timeout(timedelta(seconds=timeout))
    try:
        yield
    finally:
        store.set_timeout(before)


def _arrive(store, world_size: int, key_prefix: str) -> str:
    """Counts this member. Returns the key that the last member sets."""
    last = f"{key_prefix}/last_member"
    if store.add(f"{key_prefix}/num_members", 1) == world_size:
        store.set(last, "1")
    return last


def get_all(store, rank: int, prefix: str, world_size: int) -> list[bytes]:
    """Returns the values of the keys PREFIX0 to PREFIX(world_size - 1). Waits for them; rank 0, whose process may serve the
    store, also waits until all members have called this.
    """
    values = store.multi_get([f"{prefix}{member}" for member in range(world_size)])
    last = _arrive(store, world_size, f"{prefix}/finished")
    if rank == 0:
        store.wait([last])
    return values


def synchronize(
    store, data: bytes, rank: int, world_size: int, key_prefix: str, timeout: float = 300
) -> list[bytes]:
    """Returns the data of all members, by rank. A prefix can be used once. `timeout`: seconds."""
    with store_timeout(store, timeout):
        store.set(f"{key_prefix}{rank}", data)
        return get_all(store, rank, key_prefix, world_size)


def barrier(
    store,
    world_size: int,
    key_prefix: str,
    barrier_timeout: float = 300,
    rank: int | None = None,
    rank_tracing_decoder: Callable[[int], str] | None = None,
    trace_timeout: float = 10,
) -> None:
    """Waits until all members have called this with the prefix, which can be used once.

    Args:
        store: of the members.
        world_size: the number of members.
        key_prefix: the barrier's name.
        barrier_timeout: seconds.
        rank: this member's; if all pass theirs, an error names the missing ones.
        rank_tracing_decoder: returns what an error shows for a rank, by default its number.
        trace_timeout: seconds in which rank 0 finds the missing ranks after a timeout.

    Raises:
        DistStoreError: members are missing after the timeout.
    """
    if rank is None and rank_tracing_decoder is not None:
        raise AssertionError("Tracing requires rank information")
    with store_timeout(store, barrier_timeout):
        last = _arrive(store, world_size, key_prefix)
        try:
            store.wait([last])
        except DistStoreError as error:
            missing = None
            if rank is not None:
                missing = _missing(store, world_size, key_prefix, rank, rank_tracing_decoder or str, trace_timeout)
            if missing is None:
                raise
            raise DistStoreError(
                f"Timed out waiting on barrier on rank {rank}, for key prefix: {key_prefix} (world_size={world_size}, "
                f"missing_ranks=[{', '.join(missing)}], timeout={barrier_timeout})"
            ) from error


def _missing(
    store, world_size: int, key_prefix: str, rank: int, describe: Callable[[int], str], timeout: float
) -> list[str] | None:
    """Returns the ranks that do not report after a timed-out barrier; None if rank 0, which finds them, does not either."""
    store.set(f"{key_prefix}{rank}/TRACE", "1")
    if rank != 0:
        try:
            store.wait([f"{key_prefix}/TRACING_GATE"])
        except DistStoreError:
            return None
        return [f"[<check rank 0 ({describe(0)}) for missing rank info>]"]
    missing: list[str] = []
    for other in range(1, world_size):
        if len(missing) == _NAMED_RANKS:
            break
        try:  # after one missing rank the others have had their time
            store.wait([f"{key_prefix}{other}/TRACE"], timedelta(seconds=0.001 if missing else timeout))
        except DistStoreError:
            missing.append(describe(other))
    store.set(f"{key_prefix}/TRACING_GATE", "1")
    return missing
