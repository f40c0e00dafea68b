"""fully_shard beside the same training on one engine. Each function runs on all ranks."""

from __future__ import annotations

import copy

import teletensor as torch
from teletensor import nn
from teletensor.distributed import fsdp
from teletensor.distributed.device_mesh import init_device_mesh
from teletensor.distributed.fsdp import fully_shard
from teletensor.distributed.tensor import Replicate, Shard

from ..data_parallel.data_parallel_cases import batch, loss_of, part
from .fsdp_cases import Tower, tower, train


def shard(module: Tower, **options) -> Tower:
    for block in module.blocks:
        fully_shard(block, **options)
    return fully_shard(module, **options)


def difference(module: nn.Module, alone: nn.Module) -> float:
    """The largest difference of the full parameters to those of another module."""
    pairs = zip(module.parameters(), alone.parameters(), strict=True)
    return max((p.full_tensor() - q).abs().max().item() for p, q in pairs)


def trains(rank: int, size: int, reshard_after_forward: bool | None = None, offload: bool = False) -> list:
    policy = fsdp.CPUOffloadPolicy() if offload else fsdp.OffloadPolicy()
    module, alone = shard(tower(), reshard_after_forward=reshard_after_forward, offload_policy=policy), tower()
    train(module, rank, size)
    train(alone)
    numel = sum(p.to_local().numel() for p in module.parameters())
    names = [n for n, _ in module.named_parameters()] == [n for n, _ in alone.named_parameters()]
    return [difference(module, alone), numel, names, type(module).__name__, isinstance(module, Tower)]


def accumulates(rank: int, size: int) -> float:
    module, alone = shard(tower()), tower()
    for step in range(2):
        x, y = batch(step)
        module.set_requires_gradient_sync(step == 1)
        loss_of(module, part(x, rank, size), part(y, rank, size)).backward()
        loss_of(alone, x, y).backward()
    for m in (module, alone):
        torch.optim.SGD(m.parameters(), lr=0.1).step()
    return difference(module, alone)


def mixed_precision(rank: int, size: int) -> list[str]:
    policy = fsdp.MixedPrecisionPolicy(torch.bfloat16, torch.float32, output_dtype=torch.float32)
    module = fully_shard(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)), mp_policy=policy)
    seen = []
    module[0].register_forward_hook(lambda m, args, result: seen.append(str(result.dtype)))
    result = module(torch.ones(3, 4))
    result.sum().backward()
    return [*seen, str(result.dtype), str(module[0].weight.grad.dtype)]


def clips(rank: int, size: int, norm_type: float) -> list[float]:
    module, alone = shard(tower()), tower()
    x, y = batch(0)
    loss_of(module, part(x, rank, size), part(y, rank, size)).backward()
    loss_of(alone, x, y).backward()
    norms = [torch.nn.utils.clip_grad_norm_(m.parameters(), 0.1, norm_type).item() for m in (module, alone)]
    for m in (module, alone):
        torch.optim.SGD(m.parameters(), lr=1.0).step()
    return [abs(norms[0] - norms[1]), difference(module, alone)]


def state_dict(rank: int, size: int) -> float:
    module, other = shard(tower(1)), shard(tower(2))
    other.load_state_dict(module.state_dict())
    return difference(other, tower(1))


def methods(rank: int, size: int) -> list:
    """unshard(), another forward method, and the divisor of gradients."""

    class Encoder(nn.Linear):
        def encode(self, x):
            return self(x) * 2

        def half(self, x):
            return nn.functional.linear(x, self.weight) / 2

    torch.manual_seed(1)
    alone = Encoder(4, 4)
    module = fully_shard(copy.deepcopy(alone))
    fsdp.register_fsdp_forward_method(module, "half")
    x = torch.ones(2, 4)
    module.unshard(async_op=True).wait()
    results = [
        (module.encode(x) - alone.encode(x)).abs().max().item(),
        (module.half(x) - alone.half(x)).abs().max().item(),
    ]
    module.unshard()
    module.reshard()
    module.set_gradient_divide_factor(1.0)
    module.half(x).sum().backward()
    alone.half(x).sum().backward()
    return [*results, (module.weight.grad.full_tensor() - size * 1.0).abs().max().item()]


def rejected(rank: int, size: int) -> list[str]:
    messages = []
    module = fully_shard(nn.Linear(2, 2))
    for call in (
        lambda: fully_shard([]), lambda: fully_shard(nn.ModuleList()), lambda: fully_shard(module),
        lambda: fully_shard(nn.Linear(2, 3), shard_placement_fn=lambda p: Shard(1) if p.dim() > 1 else Replicate()),
        lambda: fully_shard(nn.Linear(3, 2), shard_placement_fn=lambda p: Shard(p.dim() - 1)),
        lambda: fully_shard(nn.PReLU(), mesh=init_device_mesh("cpu", (1, 1, 2))),
        lambda: module.set_symm_mem_for_comm(), lambda: copy.deepcopy(module),
    ):  # fmt: skip
        try:
            call()
        except (NotImplementedError, ValueError) as error:
            messages.append(str(error))
    return messages
