"""Training with checkpoints, and errors of saving and loading. Each function runs on all ranks."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import teletensor as torch
import teletensor.distributed as dist
import teletensor.distributed.checkpoint as dcp
from teletensor.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    get_state_dict,
    set_state_dict,
)
from teletensor.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy, StateDictType, fully_shard
from teletensor.distributed.tensor import Replicate, Shard, distribute_tensor
from teletensor.nn.parallel import DistributedDataParallel

BATCH = 12  # divisible by every number of ranks that the tests use


def build(kind: str) -> torch.nn.Module:
    """A model whose parameters do not divide evenly, with the same values on all ranks."""
    torch.manual_seed(3)
    model = torch.nn.Sequential(
        torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Sequential(torch.nn.Linear(7, 7), torch.nn.Tanh()),
        torch.nn.LayerNorm(7), torch.nn.Linear(7, 3),
    )  # fmt: skip
    if kind == "ddp":
        return DistributedDataParallel(model)
    if kind == "fully_shard":
        fully_shard(model[2])
        return fully_shard(model)
    if kind == "none":
        return model
    strategy = ShardingStrategy.NO_SHARD if kind == "no_shard" else ShardingStrategy.FULL_SHARD
    options = {"use_orig_params": kind == "fsdp_originals", "sharding_strategy": strategy}
    if kind == "hybrid":
        mesh = dist.init_device_mesh("cpu", (2, dist.get_world_size() // 2))
        options = {"sharding_strategy": ShardingStrategy.HYBRID_SHARD, "device_mesh": mesh}
    model[2] = FullyShardedDataParallel(model[2], **options)
    return FullyShardedDataParallel(model, **options)


def optimizer_of(model, name: str):
    if name == "adamw":
        return torch.optim.AdamW(model.parameters(), lr=0.02)
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def step(model, optimizer, number: int, rank: int, size: int) -> float:
    """Trains on this rank's part of a batch; returns the loss of the whole batch."""
    rng = np.random.default_rng(number)
    x, y = rng.standard_normal((BATCH, 5)).astype("f"), rng.standard_normal((BATCH, 3)).astype("f")
    part = slice(rank * BATCH // size, (rank + 1) * BATCH // size)
    loss = ((model(torch.tensor(x[part])) - torch.tensor(y[part])) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total = loss.detach().clone()
    if size > 1:
        dist.all_reduce(total, dist.ReduceOp.AVG)
    return total.item()


def alone(steps: int, optimizer: str) -> list[float]:
    """The losses of an uninterrupted run in one process."""
    model = build("none")
    opt = optimizer_of(model, optimizer)
    return [step(model, opt, n, 0, 1) for n in range(steps)]


def train(
    rank: int, size: int, kind: str, optimizer: str, path: str, begin: int, end: int, save: str = "sync"
) -> list[float]:
    """Continues from the checkpoint, if `begin` is not 0, and saves one."""
    model = build(kind)
    opt = optimizer_of(model, optimizer)
    if begin:
        for p in model.parameters():  # the checkpoint must replace everything
            p.data.fill_(7)
        model_state, optim_state = get_state_dict(model, opt)
        state = {"model": model_state, "optim": optim_state, "next": -1}
        dcp.load(state, checkpoint_id=path)
        set_state_dict(model, opt, model_state_dict=state["model"], optim_state_dict=state["optim"])
        assert state["next"] == begin
    losses = [step(model, opt, n, rank, size) for n in range(begin, end)]
    model_state, optim_state = get_state_dict(model, opt)
    state = {"model": model_state, "optim": optim_state, "next": end}
    if save == "sync":
        dcp.save(state, checkpoint_id=path)
        return losses
    future = dcp.async_save(state, checkpoint_id=path)
    for n in range(3):  # changes the parameters while they are written
        step(model, opt, 1000 + n, rank, size)
    future.result(30)
    return losses


def train_with_optimizer_numbers(rank: int, size: int, path: str, begin: int, end: int) -> list[float]:
    """Like train(), with state_dict() of the model and the optimizer themselves."""
    model = build("fully_shard")
    opt = optimizer_of(model, "adamw")
    if begin:
        step(model, opt, 999, rank, size)  # creates the optimizer's state
        state = {"model": model.state_dict(), "optim": opt.state_dict()}
        dcp.load(state, checkpoint_id=path)
        opt.load_state_dict(state["optim"])
    losses = [step(model, opt, n, rank, size) for n in range(begin, end)]
    dcp.save({"model": model.state_dict(), "optim": opt.state_dict()}, checkpoint_id=path)
    return losses


def stored_once(rank: int, size: int, path: str) -> list[int]:
    """What all ranks have is written by one of them; returns the bytes that each rank's files have."""
    state = {f"t{i}": torch.full((1000,), float(i)) for i in range(8)}
    dcp.save(state, checkpoint_id=path)
    loaded = {name: torch.zeros(1000) for name in state}
    dcp.load(loaded, checkpoint_id=path)
    assert all((loaded[name] == state[name]).all() for name in state)
    return [sum(f.stat().st_size for f in Path(path).glob(f"__{r}_*")) for r in range(size)]


def full_and_sharded(rank: int, size: int, path: str) -> None:
    """A full state dict is that of the unwrapped model; the sharded one of SHARDED_STATE_DICT can be saved as it is."""
    model = build("fsdp")
    plain = build("none").state_dict()
    full = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))
    assert full.keys() == plain.keys()
    for name, value in plain.items():
        np.testing.assert_array_equal(full[name].numpy(), value.numpy())
    with FullyShardedDataParallel.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        dcp.save({"model": model.state_dict()}, checkpoint_id=path)
    whole = {"model": {name: torch.zeros_like(value) for name, value in plain.items()}}
    dcp.load(whole, checkpoint_id=path)  # without shards, every rank reads everything
    for name, value in plain.items():
        np.testing.assert_array_equal(whole["model"][name].numpy(), value.numpy())
    opt = optimizer_of(model, "adamw")
    step(model, opt, 0, rank, size)
    moments = get_optimizer_state_dict(model, opt, options=StateDictOptions(full_state_dict=True))["state"]
    assert {name: tuple(s["exp_avg"].shape) for name, s in moments.items()} == {
        name: tuple(value.shape) for name, value in plain.items()
    }
    other = build("fully_shard")
    other_opt = optimizer_of(other, "adamw")
    full_model, full_optim = get_state_dict(model, opt, options=StateDictOptions(full_state_dict=True))
    set_state_dict(other, other_opt, model_state_dict=full_model, optim_state_dict=full_optim)
    assert step(other, other_opt, 5, rank, size) == pytest.approx(step(model, opt, 5, rank, size), rel=1e-5)
    assert step(other, other_opt, 6, rank, size) == pytest.approx(step(model, opt, 6, rank, size), rel=1e-5)


def errors(rank: int, size: int, path: str) -> None:
    """An error of one rank is raised on all, and the checkpoint is unchanged."""
    dcp.save({"x": torch.arange(4.0), "n": 1}, checkpoint_id=path)
    before = {f.name: f.read_bytes() for f in Path(path).iterdir()}
    dist.barrier()

    with pytest.raises(dcp.CheckpointException, match="cannot store an object of type") as failure:
        dcp.save({"x": torch.zeros(4), "n": object() if rank == 1 else 1}, checkpoint_id=path)
    assert list(failure.value.failures) == [1]

    part = torch.zeros(2 + rank)  # parts whose division is unknown
    with pytest.raises(dcp.CheckpointException, match="different tensors as 'x'"):
        dcp.save({"x": part}, checkpoint_id=path)

    with pytest.raises(dcp.CheckpointException, match=r"Size mismatch between saved .* and current: .* for x"):
        dcp.load({"x": torch.zeros(5 if rank == 0 else 4)}, checkpoint_id=path)
    with pytest.raises(dcp.CheckpointException, match="Missing key in checkpoint state_dict: y"):
        dcp.load({"y": torch.zeros(4)}, checkpoint_id=path)
    with pytest.raises(dcp.CheckpointException, match="No such file or directory"):
        dcp.load({"x": torch.zeros(4)}, checkpoint_id=path + "-missing")
    bad = torch.arange(4)[torch.tensor([9 if rank == 1 else 0])]  # an error of the engine, on one rank
    with pytest.raises(dcp.CheckpointException, match="out of (bounds|range)"):
        dcp.save({"x": torch.arange(4.0), f"bad{rank}": bad}, checkpoint_id=path)
    with pytest.raises(RuntimeError, match="rank 1: .*out of (bounds|range)"):
        dcp.async_save({"x": torch.arange(4.0), f"bad{rank}": bad}, checkpoint_id=path).result(30)

    dist.barrier()
    assert {f.name: f.read_bytes() for f in Path(path).iterdir()} == before
    state = {"x": torch.zeros(4), "n": 0}
    dcp.load(state, checkpoint_id=path)
    assert state["x"].tolist() == [0, 1, 2, 3] and state["n"] == 1


class Divided:
    """A value of which each rank has some rows, and neighbours share one."""

    def __init__(self, rank: int, size: int, whole: torch.Tensor | None):
        self.first, self.last = max(0, 2 * rank - 1), 2 * rank + 2
        rows = self.last - self.first
        self.local = torch.zeros(rows, 3) if whole is None else whole[self.first : self.last].clone()
        self.size = (2 * size, 3)

    def __shards__(self):
        return self.size, [((self.first + i, 0), self.local[i : i + 1]) for i in range(len(self.local))]


def any_sharded_value(rank: int, size: int, path: str) -> None:
    whole = torch.arange(6.0 * size).reshape(2 * size, 3)
    dcp.save({"x": Divided(rank, size, whole)}, checkpoint_id=path)
    value = Divided(rank, size, None)
    dcp.load({"x": value}, checkpoint_id=path)
    assert (value.local == whole[value.first : value.last]).all()
    columns = torch.zeros(2 * size, 2)
    dcp.load({"x": _Columns(columns, size)}, checkpoint_id=path)
    assert (columns == whole[:, 1:]).all()


class _Columns:
    def __init__(self, columns: torch.Tensor, size: int):
        self.columns, self.size = columns, size

    def __shards__(self):
        return (2 * self.size, 3), [((0, 1), self.columns)]


def save_dtensors(rank: int, size: int, path: str, columns: bool) -> None:
    """Writes a DTensor and its optimizer's state, divided by rows or columns, beside a replicated one."""
    mesh = dist.init_device_mesh("cpu", (size,))
    whole = torch.arange(35.0).reshape(5, 7)
    sharded = distribute_tensor(whole, mesh, [Shard(1 if columns else 0)])
    parameter = torch.nn.Parameter(sharded)
    optimizer = torch.optim.SGD([parameter], lr=0.5, momentum=0.9)
    (parameter * parameter).sum().backward()
    optimizer.step()  # halves; momentum is twice the values
    state = {"p": parameter, "optim": optimizer.state_dict(), "same": distribute_tensor(whole, mesh, [Replicate()])}
    dcp.save(state, checkpoint_id=path)


def load_dtensors(rank: int, size: int, path: str, columns: bool) -> None:
    mesh = dist.init_device_mesh("cpu", (size,))
    whole = torch.arange(35.0).reshape(5, 7)
    zeros = torch.zeros(5, 7)
    placement = [Shard(1 if columns else 0)]
    state = {
        "p": distribute_tensor(zeros, mesh, placement), "optim": {"state": {0: {"momentum_buffer": torch.zeros(5, 7)}}},
        "same": distribute_tensor(zeros, mesh, placement),
    }  # fmt: skip
    dcp.load(state, checkpoint_id=path)
    assert (state["p"].full_tensor() == 0).all()  # p - lr * 2 * p
    assert (state["optim"]["state"][0]["momentum_buffer"] == 2 * whole).all()
    assert (state["same"].full_tensor() == whole).all()


# Steps of test_killed.


def save_first(rank: int, size: int, path: str) -> int:
    """Writes a checkpoint; returns the process id of the engine."""
    dcp.save({"x": torch.full((1000,), 1.0), "step": 1}, checkpoint_id=path)
    return int(Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()[0])


_future = None


def form_and_save(rank: int, size: int, port: int, path: str) -> int:
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", world_size=size, rank=rank)
    return save_first(rank, size, path)


def start_saving(rank: int, size: int, path: str, megabytes: int) -> None:
    """Starts to write another checkpoint, which takes a while."""
    global _future
    big = torch.full((megabytes << 18,), 2.0)
    _future = dcp.async_save({"x": torch.full((1000,), 2.0), "step": 2, f"big{rank}": big}, checkpoint_id=path)


def saving_error() -> str:
    try:
        _future.result(40)
    except BaseException as error:  # noqa: BLE001
        return str(error)
    return ""


def load_alone(path: str) -> list:
    """Reads the checkpoint with a new engine."""
    torch.disconnect()
    state = {"x": torch.zeros(1000), "step": 0}
    dcp.load(state, checkpoint_id=path, no_dist=True)
    return [state["x"][0].item(), state["x"][999].item(), state["step"]]


def separate_disks(rank: int, size: int, paths: list[str]) -> str:
    """Each engine has another folder; returns the error."""
    with pytest.raises(dcp.CheckpointException) as failure:
        dcp.save({f"x{rank}": torch.ones(3)}, checkpoint_id=paths[rank])
    return str(failure.value)


def converted(rank: int, size: int, folder: str) -> list:
    """Converts a sharded checkpoint to a file and back, and reads the file on all ranks."""
    from teletensor.distributed.checkpoint import format_utils

    mesh = dist.init_device_mesh("cpu", (size,))
    whole = torch.arange(24.0).reshape(6, 4)
    model = {"w": distribute_tensor(whole, mesh, [Shard(0)]), "b": torch.ones(3)}
    state = {"model": model, "steps": [torch.tensor(1), torch.tensor(2)], "n": 7}
    dcp.save(state, checkpoint_id=f"{folder}/parts")
    if rank == 0:
        format_utils.dcp_to_torch_save(f"{folder}/parts", f"{folder}/file.pt")
        format_utils.torch_save_to_dcp(f"{folder}/file.pt", f"{folder}/again")
    dist.barrier()
    loaded = torch.load(f"{folder}/file.pt")
    wanted = {"model": {"w": distribute_tensor(torch.zeros(6, 4), mesh, [Shard(1)]), "b": torch.zeros(3)}}
    dcp.load(wanted, checkpoint_id=f"{folder}/again")
    read = {"model": {"w": distribute_tensor(torch.zeros(6, 4), mesh, [Shard(0)]), "b": torch.zeros(3)}}
    reader, planner = format_utils.BroadcastingTorchSaveReader(), format_utils.DynamicMetaLoadPlanner()
    dcp.load(read, storage_reader=reader, planner=planner, checkpoint_id=f"{folder}/file.pt")
    return [
        loaded["model"]["w"].equal(whole), [s.item() for s in loaded["steps"]], loaded["n"], type(loaded["steps"]).__name__,
        wanted["model"]["w"].full_tensor().equal(whole), wanted["model"]["b"].tolist(),
        read["model"]["w"].full_tensor().equal(whole), read["model"]["b"].tolist(),
    ]  # fmt: skip
