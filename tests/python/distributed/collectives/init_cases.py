"""Ways to initialize the default group. Each function runs on all ranks, without a group."""

from __future__ import annotations

import os

import teletensor as torch
import teletensor.distributed as dist


def _sum(rank: int) -> float:
    t = torch.tensor([rank + 1.0])
    dist.all_reduce(t)
    return t.item()


def from_environment(rank: int, size: int, port: int, times: int) -> list:
    os.environ |= {
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": str(port),
        "LOCAL_RANK": "7",
    }
    try:
        results = []
        for _ in range(times):
            assert not dist.is_initialized()
            dist.init_process_group()
            assert dist.is_initialized() and dist.get_rank() == rank and dist.get_world_size() == size
            results.append(_sum(rank))
            dist.destroy_process_group()
        return results + [dist.get_node_local_rank()]
    finally:
        for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK"):
            del os.environ[name]


def from_slurm(rank: int, size: int, port: int) -> list:
    variables = {
        "SLURM_JOB_ID": "12", "SLURM_STEP_ID": "0", "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank), "SLURM_NODEID": "0",
        "SLURM_STEP_NUM_TASKS": str(size), "SLURM_STEP_TASKS_PER_NODE": str(size), "SLURM_STEP_NODELIST": "localhost",
        "MASTER_PORT": str(port),
    }  # fmt: skip
    os.environ |= variables
    try:
        dist.init_process_group("gloo")
        result = [_sum(rank), dist.get_rank(), dist.get_node_local_rank()]
        dist.destroy_process_group()
        return result
    finally:
        for name in variables:
            del os.environ[name]


def from_url(rank: int, size: int, url: str) -> list:
    dist.init_process_group("cpu:gloo", url, rank=rank, world_size=size)
    result = [_sum(rank), dist.get_backend(), dist.get_backend_config(), dist.get_world_size(), dist.get_pg_count()]
    dist.destroy_process_group()
    return result


def from_url_with_rank(rank: int, size: int, url: str) -> float:
    dist.init_process_group("gloo", f"{url}?rank={rank}&world_size={size}")
    result = _sum(rank)
    dist.destroy_process_group()
    return result


def from_store(rank: int, size: int, path: str) -> list:
    results = []
    store = dist.FileStore(path, size)
    for name in "ab":
        dist.init_process_group("gloo", store=dist.PrefixStore(name, store), rank=rank, world_size=size)
        results.append(_sum(rank))
        dist.destroy_process_group()
    return results


def rejected(rank: int, size: int) -> list[str]:
    os.environ.pop("RANK", None)
    messages = []
    calls = [
        lambda: dist.get_rank(),
        lambda: dist.init_process_group("gloo"),
        lambda: dist.init_process_group("gloo", rank=0),
        lambda: dist.init_process_group("gloo", rank=0, world_size=1),
        lambda: dist.init_process_group("gloo", "tcp://127.0.0.1", rank=0, world_size=1),
        lambda: dist.init_process_group("gloo", "tcp://127.0.0.1:1"),
        lambda: dist.init_process_group("gloo", "other://x", rank=0, world_size=1),
        lambda: dist.init_process_group("gloo", timeout=3),
        lambda: dist.init_process_group("mpi"),
        lambda: dist.init_process_group("nccl"),
        lambda: dist.init_process_group("unknown"),
        lambda: dist.init_process_group("cpu:gloo:x"),
        lambda: dist.init_process_group("gloo", "env://", store=object(), rank=0, world_size=1),
        lambda: dist.destroy_process_group(),
    ]
    for call in calls:
        try:
            call()
        except Exception as error:  # noqa: BLE001 - compared by the test
            messages.append(f"{type(error).__name__}: {error}")
    return messages


def exit_without_destroying(rank: int, size: int, port: int) -> float:
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", world_size=size, rank=rank)
    return _sum(rank)


def default_store(rank: int, size: int) -> list:
    """A store that all ranks share, whichever way the group was initialized."""
    from teletensor.distributed.distributed_c10d import _get_default_store

    store = _get_default_store()
    store.set(f"rank{rank}", str(rank))
    return [store.get(f"rank{r}").decode() for r in range(size)]
