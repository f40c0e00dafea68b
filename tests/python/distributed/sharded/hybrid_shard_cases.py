"""Sharding within groups and replication between them, beside the same training on one engine. Each function runs on all
ranks."""

from __future__ import annotations

import os

import teletensor as torch
import teletensor.distributed as dist
from teletensor import nn
from teletensor.distributed import fsdp
from teletensor.distributed.device_mesh import init_device_mesh
from teletensor.distributed.fsdp import FullyShardedDataParallel as FSDP  # noqa: N817
from teletensor.distributed.fsdp import fully_shard
from teletensor.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler

from ..data_parallel.data_parallel_cases import batch, loss_of, part
from . import fsdp_cases, fully_shard_cases
from .fsdp_cases import BLOCKS, tower, train


def two_groups(rank: int) -> tuple:
    """Groups of ranks 0, 1 and 2, 3 that divide; of 0, 2 and 1, 3 that replicate."""
    shard = dist.new_subgroups_by_enumeration([[0, 1], [2, 3]])[0]
    return shard, dist.new_subgroups_by_enumeration([[0, 2], [1, 3]])[0]


def losses(module: nn.Module, rank: int, size: int, steps: int = 4) -> list[float]:
    """The mean loss of all ranks in each step of a training."""
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2, eps=1e-4)
    result = []
    for step in range(steps):
        x, y = (part(t, rank, size) for t in batch(step))
        optimizer.zero_grad()
        loss = loss_of(module, x, y)
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        if size > 1:
            dist.all_reduce(mean, dist.ReduceOp.AVG)
        result.append(mean.item())
    return result


def wrapper(rank: int, size: int, strategy: str = "HYBRID_SHARD", given: str = "mesh", **options) -> list:
    """FullyShardedDataParallel: differences of losses and parameters, and the share of the parameters that a rank stores."""
    groups = {"device_mesh": init_device_mesh("cpu", (2, 2))} if given == "mesh" else {}
    if given == "groups":
        groups = {"process_group": two_groups(rank)}
    elif given == "hosts":
        os.environ["LOCAL_WORLD_SIZE"] = "2"
    try:
        module = FSDP(tower(seed=1 + rank), auto_wrap_policy=BLOCKS, sync_module_states=True,
                      sharding_strategy=fsdp.ShardingStrategy[strategy], **groups, **options)  # fmt: skip
    finally:
        os.environ.pop("LOCAL_WORLD_SIZE", None)
    alone = tower()
    pairs = zip(losses(module, rank, size), losses(alone, 0, 1), strict=True)
    stored = sum(p.numel() for p in module.parameters()) / sum(p.numel() for p in alone.parameters())
    state = module.state_dict()
    whole = max((state[k] - v).abs().max().item() for k, v in alone.state_dict().items())
    return [max(abs(a - b) for a, b in pairs), fsdp_cases.difference(module, alone), whole, stored]


def in_place(rank: int, size: int, shape: tuple = (2, 2), **options) -> list:
    """fully_shard on a mesh with two dimensions."""
    mesh = init_device_mesh("cpu", tuple(shape), mesh_dim_names=("replicas", "shards"))
    module, alone = fully_shard_cases.shard(tower(), mesh=mesh, **options), tower()
    pairs = zip(losses(module, rank, size), losses(alone, 0, 1), strict=True)
    stored = sum(p.to_local().numel() for p in module.parameters()) / sum(p.numel() for p in alone.parameters())
    return [max(abs(a - b) for a, b in pairs), fully_shard_cases.difference(module, alone), stored]


def accumulates(rank: int, size: int) -> float:
    """Passes that do not average at all, that average within a replica, and that average over replicas."""
    module, alone = fully_shard_cases.shard(tower(), mesh=init_device_mesh("cpu", (2, 2))), tower()
    for step, (synchronizes, replicates) in enumerate([(False, True), (True, False), (True, False), (True, True)]):
        module.set_requires_gradient_sync(synchronizes)
        module.set_requires_all_reduce(replicates)
        x, y = batch(step)
        loss_of(module, part(x, rank, size), part(y, rank, size)).backward()
        loss_of(alone, x, y).backward()
        if step == 2:
            assert all(p.grad is None for p in module.parameters())
    for m in (module, alone):
        torch.optim.SGD(m.parameters(), lr=0.1).step()
    return fully_shard_cases.difference(module, alone)


def divides(rank: int, size: int) -> float:
    """set_gradient_divide_factor() divides the sum over all ranks."""
    module = fully_shard(nn.Linear(4, 4, bias=False), mesh=init_device_mesh("cpu", (2, 2)))
    module.set_gradient_divide_factor(8.0)
    module(torch.ones(1, 4)).sum().backward()
    return (module.weight.grad.full_tensor() - size / 8.0).abs().max().item()


def clips(rank: int, size: int) -> list[float]:
    module, alone = FSDP(tower(), auto_wrap_policy=BLOCKS, device_mesh=init_device_mesh("cpu", (2, 2)),
                         sharding_strategy=fsdp.ShardingStrategy.HYBRID_SHARD), tower()  # fmt: skip
    x, y = batch(0)
    loss_of(module, part(x, rank, size), part(y, rank, size)).backward()
    loss_of(alone, x, y).backward()
    norms = [module.clip_grad_norm_(0.1), torch.nn.utils.clip_grad_norm_(alone.parameters(), 0.1)]
    for m in (module, alone):
        torch.optim.SGD(m.parameters(), lr=1.0).step()
    return [abs(norms[0].item() - norms[1].item()), fsdp_cases.difference(module, alone)]


def skips_a_step(rank: int, size: int) -> list[bool]:
    """An overflow on one rank skips the step on all ranks."""
    module = FSDP(tower(), device_mesh=init_device_mesh("cpu", (2, 2)), use_orig_params=True,
                  sharding_strategy=fsdp.ShardingStrategy.HYBRID_SHARD)  # fmt: skip
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    scaler = ShardedGradScaler("cpu", init_scale=4.0)
    x, y = batch(0)
    loss = loss_of(module, part(x, rank, size), part(y, rank, size))
    scaler.scale(loss * (float("inf") if rank == 3 else 1.0)).backward()
    before = [p.detach().clone() for p in module.parameters()]
    scaler.step(optimizer)
    scaler.update()
    return [all(torch.equal(a, b) for a, b in zip(before, module.parameters(), strict=True)), scaler.get_scale() == 2.0]


def optimizer_state(rank: int, size: int) -> float:
    """The optimizer's state by name is that of one engine."""
    module, alone = FSDP(tower(), auto_wrap_policy=BLOCKS, device_mesh=init_device_mesh("cpu", (2, 2)),
                         sharding_strategy=fsdp.ShardingStrategy.HYBRID_SHARD), tower()  # fmt: skip
    optimizer, expected = train(module, rank, size), train(alone)
    state = FSDP.optim_state_dict(module, optimizer)["state"]
    return max((state[name]["exp_avg"] - expected.state[p]["exp_avg"]).abs().max().item()
               for name, p in alone.named_parameters())  # fmt: skip


def rejected(rank: int, size: int) -> list[str]:
    hybrid, mesh = {"sharding_strategy": fsdp.ShardingStrategy.HYBRID_SHARD}, init_device_mesh("cpu", (2, 2))
    group, line, cube = dist.group.WORLD, init_device_mesh("cpu", (4,)), init_device_mesh("cpu", (2, 2, 1))
    messages = []
    for call in (
        lambda: FSDP(nn.Linear(2, 2), **hybrid),
        lambda: FSDP(nn.Linear(2, 2), auto_wrap_policy=BLOCKS, **hybrid),
        lambda: FSDP(nn.Linear(2, 2), group, **hybrid),
        lambda: FSDP(nn.Linear(2, 2), device_mesh=line, **hybrid),
        lambda: FSDP(nn.Linear(2, 2), device_mesh=mesh),
        lambda: FSDP(nn.Linear(2, 2), (group, group)),
        lambda: FSDP(nn.Linear(2, 2), group, device_mesh=line),
        lambda: fully_shard(nn.Linear(2, 2), mesh=cube),
    ):
        try:
            call()
            messages.append("no error")
        except ValueError as error:
            messages.append(str(error))
    return messages
