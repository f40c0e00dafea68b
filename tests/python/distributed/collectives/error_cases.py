"""Failures of ranks, and calls that differ between ranks. Each function runs on all ranks."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from datetime import timedelta

import teletensor as torch
import teletensor.distributed as dist


def _error_of(function) -> str:
    """Returns the message of the error that a function raises; "" if there is none."""
    try:
        function()
    except RuntimeError as error:
        return str(error)
    return ""


def different_shapes(rank: int, size: int) -> list:
    t = torch.ones(3 if rank == 0 else 4)
    dist.all_reduce(t)
    message = _error_of(t.tolist)
    after = torch.ones(2)
    dist.all_reduce(after)
    return [message, after.tolist(), t.tolist()]


def different_dtypes(rank: int, size: int) -> list:
    t = torch.ones(3, dtype=torch.float32 if rank == 0 else torch.float64)
    dist.broadcast(t, 0)
    return [_error_of(t.tolist)]


def different_collectives(rank: int, size: int) -> list:
    t = torch.ones(3)
    if rank == 0:
        dist.all_reduce(t)
    else:
        dist.broadcast(t, 0)
    return [_error_of(t.tolist)]


def different_reductions(rank: int, size: int) -> list:
    t = torch.ones(3)
    dist.all_reduce(t, dist.ReduceOp.SUM if rank == 0 else dist.ReduceOp.MAX)
    return [_error_of(t.tolist)]


def different_order(rank: int, size: int) -> list:
    a, b = torch.ones(2), torch.ones(5)
    for t in (a, b) if rank == 0 else (b, a):
        dist.all_reduce(t)
    return [_error_of(a.tolist), _error_of(b.tolist)]


def barrier_against_all_reduce(rank: int, size: int) -> list:
    if rank == 0:
        return [_error_of(dist.barrier)]
    t = torch.ones(1)
    dist.all_reduce(t)
    return [_error_of(t.tolist)]


def failed_tensor(rank: int, size: int) -> list:
    """A computation fails on rank 1 before its result is reduced."""
    t = torch.ones(3)
    if rank == 1:
        t = t[torch.tensor([0, 1, 7])]
    dist.all_reduce(t)
    message = ""
    try:
        t.tolist()
    except (RuntimeError, IndexError) as error:
        message = f"{type(error).__name__}: {error}"
    after = torch.ones(1)
    dist.all_reduce(after)
    return [message, after.item()]


def failed_tensor_async(rank: int, size: int) -> list:
    t = torch.ones(3)
    if rank == 1:
        t = t[torch.tensor([0, 1, 7])]
    work = dist.all_reduce(t, async_op=True)
    work.wait()
    message = _error_of(t.tolist) if rank != 1 else "own"
    after = torch.ones(1)
    dist.all_reduce(after)
    return [message, work.is_success(), after.item()]


def unequal_splits(rank: int, size: int) -> list:
    sends, receives = [2, 2], [2, 1] if rank == 0 else [2, 2]
    output = torch.empty(sum(receives))
    dist.all_to_all_single(output, torch.ones(4), receives, sends)
    return [_error_of(output.tolist)]


def unequal_message(rank: int, size: int) -> list:
    if rank == 0:
        dist.send(torch.ones(3), 1)
        return [""]
    t = torch.empty(4)
    dist.recv(t, 0)
    return [_error_of(t.tolist)]


def killed_rank(rank: int, size: int, port: int, victim: int, collective: str, what: str) -> list:
    """One rank's engine or process is killed while the others wait in a collective."""
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", world_size=size, rank=rank)
    kept = torch.arange(5)
    t = torch.ones(100_000)
    dist.all_reduce(t)
    dist.barrier()
    if rank == victim and what == "process":
        os.kill(os.getpid(), signal.SIGKILL)
    if rank == victim:
        children = open(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read().split()
        for child in children:
            os.kill(int(child), signal.SIGKILL)
        try:
            t.tolist()
        except ConnectionError as error:
            return [str(error)]
        return ["no error"]
    operation = {"all_reduce": lambda: dist.all_reduce(t), "barrier": lambda: dist.barrier(async_op=True)}[collective]
    work = operation()
    message = _error_of(t.tolist if work is None else work.wait)
    later = _error_of(dist.barrier)
    dist.destroy_process_group()
    return [message, later, kept.tolist()]


def form_again(rank: int, size: int, port: int, members: list) -> list:
    """The remaining ranks form a new group."""
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", world_size=len(members), rank=members.index(rank))
    t = torch.ones(2)
    dist.all_reduce(t)
    result = t.tolist()
    dist.destroy_process_group()
    return result


def missing_rank(rank: int, size: int, port: int, missing: int, how: str, path: str) -> str:
    """One rank does not take part when the group is formed."""
    if rank == missing:
        return ""
    method = f"tcp://127.0.0.1:{port}" if how == "tcp" else f"file://{path}"
    try:
        dist.init_process_group("gloo", method, world_size=size, rank=rank, timeout=timedelta(seconds=1.5))
    except dist.DistStoreError as error:
        return str(error)
    dist.destroy_process_group()
    return "formed"


def missing_in_collective(rank: int, size: int, port: int) -> str:
    """One rank is alive but does not call the collective."""
    dist.init_process_group(
        "gloo", f"tcp://127.0.0.1:{port}", world_size=size, rank=rank, timeout=timedelta(seconds=1.5)
    )
    t = torch.ones(3)
    if rank == 1:
        time.sleep(2.5)
        message = ""
    else:
        dist.all_reduce(t)
        message = _error_of(t.tolist)
    dist.destroy_process_group()
    return message


def missing_in_monitored_barrier(rank: int, size: int, wait_all_ranks: bool) -> list:
    if rank in (1, 2):
        time.sleep(1.2)
        return [""]
    messages = [
        _error_of(lambda: dist.monitored_barrier(timeout=timedelta(seconds=0.5), wait_all_ranks=wait_all_ranks))
    ]
    t = torch.ones(2)
    dist.all_reduce(t)
    messages.append(_error_of(t.tolist))
    return messages


def monitored_barrier_without_time(rank: int, size: int) -> str:
    with contextlib.suppress(RuntimeError):  # after it all ranks are connected; rank 0 may abort while others are in it
        dist.barrier()
    if rank == 0:
        return _error_of(lambda: dist.monitored_barrier(timeout=timedelta(0)))
    time.sleep(0.5)
    return ""


def aborted(rank: int, size: int) -> str:
    t = torch.ones(2)
    with contextlib.suppress(RuntimeError):  # after it all ranks are connected; rank 0 may abort while others are in it
        dist.barrier()
    if rank == 0:
        dist.group.WORLD.abort("not enough data")
    dist.all_reduce(t)
    return _error_of(t.tolist)


def departed(rank: int, size: int) -> list:
    """Rank 0 leaves after its last collective; the others still use groups without it."""
    group = dist.new_group([1, 2])
    t = torch.ones(1 << 20)
    dist.all_reduce(t)
    if rank == 0:
        return []
    time.sleep(0.3)
    dist.all_reduce(t, group=group)
    world = torch.ones(1)
    dist.all_reduce(world)
    return [t[0].item(), _error_of(world.item)]


def shrunk(rank: int, size: int) -> list:
    """The group continues without rank 1, which leaves."""
    if rank == 1:
        return []
    group = dist.shrink_group([1])
    assert group is dist.group.WORLD and dist.get_world_size() == size - 1
    t = torch.tensor([rank])
    dist.all_reduce(t)
    return [dist.get_rank(), t.item()]
