"""Steps of ranks whose engines or processes are killed or stopped by the test. Each function runs on one rank."""

from __future__ import annotations

import os
import random
import time
from datetime import timedelta
from pathlib import Path

import teletensor as torch
import teletensor.distributed as dist

kept = None  # a tensor of this rank, which must survive


def engine_pid() -> int:
    """Starts this process's engine; returns its process id."""
    global kept
    kept = torch.arange(5)
    kept.tolist()
    return int(Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()[0])


def form(rank: int, size: int, port: int, backend: str, timeout: float, host: str = "127.0.0.1") -> list:
    """Forms the default group. Returns the error's message, "" if there is none, and the seconds that it took."""
    os.environ["TELETENSOR_GROUP_BACKEND"] = backend
    kept_tensor()
    begin = time.monotonic()
    try:
        dist.init_process_group(
            "gloo", f"tcp://{host}:{port}", world_size=size, rank=rank, timeout=timedelta(seconds=timeout)
        )
        dist.barrier()
    except (RuntimeError, ConnectionError) as error:
        return [str(error), time.monotonic() - begin]
    return ["", time.monotonic() - begin]


def receive_from_any() -> str:
    """Returns the error of a receive that no message ends."""
    try:
        dist.recv(torch.zeros(3))
    except RuntimeError as error:
        return str(error)
    return "no error"


def stream_on_gpu(numel: int, seconds: float) -> str:
    """Returns the error that ends a stream of collectives of a tensor on the GPU."""
    t = torch.ones(numel, device="cuda")
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            dist.all_reduce(t, dist.ReduceOp.AVG)
            t[0].item()
    except RuntimeError as error:
        return str(error)
    return "no error"


def stream(numel: int, seconds: float) -> list:
    """Runs collectives until one fails. Returns the error and the time at which it was raised."""
    t = torch.ones(numel)
    deadline = time.monotonic() + seconds
    try:
        while time.monotonic() < deadline:
            dist.all_reduce(t, dist.ReduceOp.MAX)
            t[0].item()
    except (RuntimeError, ConnectionError) as error:
        return [str(error), time.monotonic(), kept_tensor()]
    return ["", time.monotonic(), kept_tensor()]


def kept_tensor() -> list:
    """Computes on this rank alone."""
    if kept is None:
        engine_pid()
    try:
        return (kept * 2).tolist()
    except ConnectionError:
        return []


def form_again(rank: int, size: int, port: int, members: list) -> list:
    """Forms a group of some ranks: over the same store with port 0, otherwise a new default group."""
    os.environ.pop("TELETENSOR_GROUP_BACKEND", None)
    if port == 0:
        group = dist.new_group(members, use_local_synchronization=True)
    else:
        if dist.is_initialized():
            dist.destroy_process_group()
        dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", world_size=len(members), rank=members.index(rank))
        group = None
    t = torch.full((3,), rank)
    dist.all_reduce(t, group=group)
    result = t.tolist()
    dist.destroy_process_group()
    return result


def random_stream(rank: int, size: int, port: int, backend: str, seed: int) -> list:
    """Forms a group and runs random collectives, the same on all ranks, until one fails.

    Returns the error, the time at which it was raised, a result of this rank alone, and the number of collectives.
    """
    generator, steps = random.Random(seed), 0
    message, _ = form(rank, size, port, backend, 30)
    deadline = time.monotonic() + 20
    while not message and time.monotonic() < deadline:
        numel = generator.choice([1, 17, 1000, 65_536, 500_000]) * size
        x = torch.ones(numel)
        steps += 1
        try:
            kind = generator.randrange(7)
            if kind == 0:
                dist.all_reduce(x)
            elif kind == 1:
                dist.broadcast(x, generator.randrange(size))
            elif kind == 2:
                dist.all_gather_into_tensor(torch.empty(numel * size), x)
            elif kind == 3:
                dist.reduce_scatter_tensor(torch.empty(numel // size), x)
            elif kind == 4:
                dist.all_to_all_single(torch.empty(numel), x)
            elif kind == 5:
                dist.barrier()
            else:
                for work in [dist.all_reduce(torch.ones(numel), async_op=True) for _ in range(3)]:
                    work.wait()
            dist.barrier()
            x[0].item()
        except (RuntimeError, ConnectionError) as error:
            message = str(error)
    when = time.monotonic()
    kept = kept_tensor()
    if dist.is_initialized():
        dist.destroy_process_group()
    return [message, when, kept, steps]


def new_engine() -> int:
    """Replaces this process's dead engine; returns the new one's process id."""
    if dist.is_initialized():
        dist.destroy_process_group()
    torch.disconnect()
    return engine_pid()


def all_kinds() -> list:
    """Runs a reduction, a gather and messages around a ring of the default group."""
    rank, size = dist.get_rank(), dist.get_world_size()
    x = torch.full((70_000,), rank + 1.0)
    dist.all_reduce(x)
    gathered = torch.empty(size)
    dist.all_gather_into_tensor(gathered, torch.full((1,), float(rank)))
    received = torch.empty(1)
    request = dist.isend(torch.full((1,), float(rank)), (rank + 1) % size)
    dist.recv(received, (rank - 1) % size)
    request.wait()
    return [x.tolist(), gathered.tolist(), received.item()]


def records_of_all(rank: int, size: int) -> dict:
    """A group whose rank 1 does not arrive at the last collective: what each rank knows of the others."""
    group = dist.new_group(timeout=timedelta(seconds=1))
    t = torch.ones(300)
    dist.all_reduce(t, group=group)
    if rank == 0:
        dist.send(t, 1, group=group)
    elif rank == 1:
        dist.recv(t, 0, group=group)
    message = ""
    try:
        if rank != 1:
            dist.all_reduce(t, dist.ReduceOp.MAX, group=group)
            t[0].item()
        else:
            time.sleep(2)
            dist.broadcast(t, 0, group=group)
            t[0].item()
    except RuntimeError as error:
        message = str(error)
    time.sleep(1.5)
    records = dist.dump_flight_recorder(group)
    return {str(k): [[r["operation"], r["state"], r["items"], r["line"], r["error"]] for r in v] for k, v in records.items()} | {
        "message": message
    }


def stores_of_earlier_groups(rank: int, size: int, ports: list[int]) -> int:
    """Forms groups at different addresses; returns the number of listening sockets of this rank's engine."""
    for port in ports:
        dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", world_size=size, rank=rank)
        dist.barrier()
        dist.destroy_process_group()
    listening = {
        line.split()[9] for table in ("tcp", "tcp6") for line in Path(f"/proc/{engine_pid()}/net/{table}").read_text().splitlines()[1:]
        if line.split()[3] == "0A"
    }  # fmt: skip
    links = [os.readlink(link) for link in Path(f"/proc/{engine_pid()}/fd").iterdir()]
    return sum(f"socket:[{inode}]" in links for inode in listening)
