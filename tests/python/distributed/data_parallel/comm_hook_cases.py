"""Communication hooks of DistributedDataParallel, beside gradients of one engine. Each function runs on all ranks."""

from __future__ import annotations

import numpy as np

import teletensor as torch
import teletensor.distributed as dist
from teletensor import nn
from teletensor._connection import connection
from teletensor.distributed.algorithms.ddp_comm_hooks import (
    DDPCommHookType,
    default_hooks,
    powerSGD_hook,
    register_ddp_comm_hook,
)
from teletensor.nn.parallel import DistributedDataParallel

from .data_parallel_cases import BATCH, STEPS, Branches, batch, difference, loss_of, model, part, train_alone


def average(group, bucket: dist.GradBucket):
    """A hook that averages exactly."""
    work = dist.all_reduce(bucket.buffer(), dist.ReduceOp.SUM, group=group, async_op=True)
    return work.get_future().then(lambda future: [future.value()[0] / dist.get_world_size(group)])


def gradients_differ(a: nn.Module, b: nn.Module) -> float:
    """The largest difference of gradients, relative to the largest gradient."""
    return max(((p.grad - q.grad).abs().max() / q.grad.abs().max()).item()
               for p, q in zip(a.parameters(), b.parameters(), strict=True))  # fmt: skip


def trains(rank: int, size: int, bucket_cap_mb: float | None = None) -> list:
    """Training with a hook in Python: the parameters, and the buckets that the hook gets."""
    seen: list = []

    def hook(state, bucket):
        assert state == "state" and len(bucket.gradients()) == len(bucket.parameters())
        assert sum(g.numel() for g in bucket.gradients()) == bucket.buffer().numel()
        seen.append([bucket.index(), bucket.is_last(), len(bucket.parameters())])
        return average(None, bucket)

    module = DistributedDataParallel(model(seed=1 + rank), bucket_cap_mb=bucket_cap_mb)
    module.register_comm_hook("state", hook)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2)
    for step in range(STEPS):
        x, y = batch(step)
        optimizer.zero_grad()
        loss_of(module, part(x, rank, size), part(y, rank, size)).backward()
        optimizer.step()
    return [difference(module.module, train_alone()), seen[: len(seen) // STEPS]]


def accumulates(rank: int, size: int) -> float:
    """no_sync(), and a second pass that synchronizes before the gradients are cleared."""
    module = DistributedDataParallel(model())
    module.register_comm_hook(None, average)
    with module.no_sync():
        x, y = batch(0)
        loss_of(module, part(x, rank, size), part(y, rank, size)).backward()
    for step in (1, 2):
        x, y = batch(step)
        loss_of(module, part(x, rank, size), part(y, rank, size)).backward()
    alone = model()
    for step in range(3):
        loss_of(alone, *batch(step)).backward()
    return gradients_differ(module.module, alone)


def two_modules(rank: int, size: int) -> float:
    """A pass that reaches one of two modules leaves the other one's gradients alone, also if it clears them."""
    generator, discriminator = (DistributedDataParallel(nn.Linear(4, 4)) for _ in range(2))
    for module in (generator, discriminator):
        module.register_comm_hook(None, average)
    alone = nn.Linear(4, 4), nn.Linear(4, 4)
    for copy, module in zip(alone, (generator, discriminator), strict=True):
        copy.load_state_dict(module.module.state_dict())
    x = torch.arange(BATCH * 4.0).reshape(BATCH, 4) / 10
    for g, d, data in ((generator, discriminator, part(x, rank, size)), (*alone, x)):
        sample = g(data)
        g.zero_grad(set_to_none=False)
        d(sample.detach()).square().mean().backward()
        sample.square().mean().backward()
    return max(gradients_differ(m.module, copy) for m, copy in zip((generator, discriminator), alone, strict=True))


class Result:
    """An output that is neither a tensor nor a container."""

    def __init__(self, value: torch.Tensor):
        self.value = value


class Nested(nn.Linear):
    def forward(self, x, as_object: bool):
        y = super().forward(x)
        return Result(y) if as_object else {"values": [y, (y * 2,)], "count": 3}


def other_outputs(rank: int, size: int) -> list[float]:
    """Outputs in containers, and in an object, whose tensors are not found."""
    differences = []
    x = torch.arange(BATCH * 4.0).reshape(BATCH, 4) / 10
    for as_object in (False, True):
        module, alone = DistributedDataParallel(Nested(4, 4)), Nested(4, 4)
        alone.load_state_dict(module.module.state_dict())
        module.register_comm_hook(None, average)
        for m, data in ((module, part(x, rank, size)), (alone, x)):
            output = m(data, as_object)
            (output.value if as_object else output["values"][1][0]).square().mean().backward()
        differences.append(gradients_differ(module.module, alone))
    return differences


def unused(rank: int, size: int) -> list:
    torch.manual_seed(0)
    module = DistributedDataParallel(Branches(), find_unused_parameters=True)
    module.register_comm_hook(None, average)
    for _ in range(2):
        module.zero_grad()
        module(torch.ones(3, 4), rank).sum().backward()
    return [None if p.grad is None else p.grad.flatten().tolist() for p in module.module.parameters()]


def unused_without_the_option(rank: int, size: int) -> str:
    torch.manual_seed(0)
    module = DistributedDataParallel(Branches())
    module.register_comm_hook(None, average)
    try:
        module(torch.ones(3, 4), rank).sum().backward()
        return "no error"
    except RuntimeError as error:
        return str(error)


def wrapped(rank: int, size: int, name: str) -> list:
    """A hook that gets 16-bit gradients; the engine's three hooks called from a hook in Python."""
    dtypes: list[str] = []

    def hook(state, bucket):
        dtypes.append(str(bucket.buffer().dtype))
        return default_hooks.allreduce_hook(None, bucket)

    def through_python(state, bucket):
        return getattr(default_hooks, f"{name}_hook")(state, bucket)

    differences = []
    for used in (getattr(default_hooks, f"{name}_wrapper")(hook), through_python):
        module, alone = DistributedDataParallel(model()), model()
        module.register_comm_hook(None, used)
        x, y = batch(0)
        loss_of(module, part(x, rank, size), part(y, rank, size)).backward()
        loss_of(alone, x, y).backward()
        assert all(p.grad.dtype == torch.float32 for p in module.parameters())
        differences.append(gradients_differ(module.module, alone))
    return [differences, dtypes]


# PowerSGD.


def compressed_twice(rank: int, size: int) -> float:
    """PowerSGD of 16-bit gradients. A gradient of rank 1 is exact up to their rounding."""
    torch.manual_seed(0)
    module = DistributedDataParallel(nn.Linear(20, 10, bias=False))
    hook = default_hooks.fp16_compress_wrapper(powerSGD_hook.powerSGD_hook)
    module.register_comm_hook(power_sgd_state(), hook)
    x = torch.linspace(-1, 1, 20)[None]
    for _ in range(4):
        module.zero_grad()
        (module(x) * torch.arange(10.0)).sum().backward()
    expected = torch.arange(10.0)[:, None] * x
    return ((module.module.weight.grad - expected).abs().max() / 9).item()


def power_sgd_state(**options) -> powerSGD_hook.PowerSGDState:
    return powerSGD_hook.PowerSGDState(None, **{"start_powerSGD_iter": 2, "min_compression_rate": 0, **options})


def full_rank(rank: int, size: int, hook: str, **options) -> list[float]:
    """With as many columns as the matrices have, the averages are exact. The first two steps are not compressed."""
    module = DistributedDataParallel(model(), bucket_cap_mb=0.004)
    state = power_sgd_state(matrix_approximation_rank=100, **options)
    module.register_comm_hook(state, getattr(powerSGD_hook, hook))
    differences = []
    for step in range(4):
        alone = model()
        alone.load_state_dict(module.module.state_dict())
        module.zero_grad()
        x, y = batch(step)
        loss_of(module, part(x, rank, size), part(y, rank, size)).backward()
        loss_of(alone, x, y).backward()
        differences.append(gradients_differ(module.module, alone))
    assert state.iter == 4
    assert (len(state.error_dict) > 0) == state.use_error_feedback and (
        len(state.q_memory_dict) > 0
    ) == state.warm_start
    return differences


def low_rank(rank: int, size: int, **options) -> list:
    """A gradient of rank 1 is exact with one column, however it is divided among the ranks; others lose something.
    Returns the differences, and whether all ranks got the same gradients."""
    torch.manual_seed(0)
    module = DistributedDataParallel(nn.Sequential(nn.Linear(20, 10, bias=False), nn.Linear(10, 10, bias=False)))
    module.register_comm_hook(power_sgd_state(**options), powerSGD_hook.powerSGD_hook)
    generator = np.random.default_rng(3)
    left, right, full = (
        torch.tensor(generator.standard_normal(s, dtype=np.float32)) for s in ((10, 1), (1, 20), (10, 10))
    )
    first, second = module.module[0].weight, module.module[1].weight
    for _ in range(3):
        module.zero_grad()
        # The gradients of this loss are given matrices: (rank + 1) * left right^T, and the full one on each rank.
        out = module(torch.zeros(1, 20)).sum() * 0
        (out + (first * (left @ right)).sum() * (rank + 1) + (second * full).sum()).backward()
    expected = left @ right * (size + 1) / 2
    exact = ((first.grad - expected).abs().max() / expected.abs().max()).item()
    error = ((second.grad - full).norm() / full.norm()).item()
    every = [torch.empty_like(second.grad) for _ in range(size)]
    dist.all_gather(every, second.grad)
    return [exact, error, all(torch.equal(t, every[0]) for t in every)]


def mean_of_steps(rank: int, size: int, use_error_feedback: bool) -> float:
    """The mean of the compressed gradients over many steps with the same gradients: error feedback makes it exact."""
    torch.manual_seed(0)
    module = DistributedDataParallel(nn.Linear(12, 12, bias=False))
    state = power_sgd_state(use_error_feedback=use_error_feedback)
    module.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    mine = [torch.tensor(np.random.default_rng(r).standard_normal((12, 12), dtype=np.float32)) for r in range(size)]
    weight = module.module.weight
    total = torch.zeros(12, 12)
    for step in range(202):
        module.zero_grad()
        (module(torch.zeros(1, 12)).sum() * 0 + (weight * mine[rank]).sum()).backward()
        if step >= 2:
            total += weight.grad
    expected = torch.stack(mine).mean(0)
    return ((total / 200 - expected).norm() / expected.norm()).item()


def converges(rank: int, size: int) -> list[float]:
    """Training with one column reaches a small loss; returns the first and the last loss, and the compression rate."""
    module = DistributedDataParallel(model())
    state = powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=2)
    module.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.2, momentum=0.9)
    x, y = batch(0)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = loss_of(module, part(x, rank, size), part(y, rank, size))
        loss.backward()
        optimizer.step()
        losses.append(loss)
    dist.all_reduce(ends := torch.stack([losses[0], losses[-1]]).detach(), dist.ReduceOp.AVG)
    return [*ends.tolist(), state.compression_stats()[0]]


def does_not_wait(rank: int, size: int) -> int:
    """The number of reads by this process in a compressed step."""
    module = DistributedDataParallel(model())
    module.register_comm_hook(power_sgd_state(use_error_feedback=True), powerSGD_hook.powerSGD_hook)
    x, y = batch(0)
    for step in range(4):
        if step == 3:
            before = sum(row[2] for row in connection().wait_report() if row[1] == "read")
        loss_of(module, part(x, rank, size), part(y, rank, size)).backward()
    return sum(row[2] for row in connection().wait_report() if row[1] == "read") - before


def by_type(rank: int, size: int) -> list[float]:
    """register_ddp_comm_hook() with each type, in a step without compression."""
    differences = []
    for kind in DDPCommHookType:
        module, alone = DistributedDataParallel(model()), model()
        register_ddp_comm_hook(kind, module, None if "POWER" not in kind.name else dist.group.WORLD)
        x, y = batch(0)
        loss_of(module, part(x, rank, size), part(y, rank, size)).backward()
        loss_of(alone, x, y).backward()
        differences.append(gradients_differ(module.module, alone))
    return differences


def rejected(rank: int, size: int) -> list[str]:
    module = DistributedDataParallel(nn.Linear(2, 2))
    kinds = []
    for call in (
        lambda: module.register_comm_hook(None, 3),
        lambda: module.register_comm_hook("state", default_hooks.fp16_compress_hook),
        lambda: powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=1),
        lambda: (module.register_comm_hook(None, average), module.join_hook()),
    ):
        try:
            call()
            kinds.append("no error")
        except (TypeError, ValueError, NotImplementedError) as error:
            kinds.append(type(error).__name__)
    return kinds
