"""fully_shard beside the same training on one engine. Each function runs on all ranks."""

from __future__ import annotations

import copy
import typing

import teletensor as torch
from teletensor import nn
from teletensor.distributed import fsdp
from teletensor.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)  # fmt: skip
from teletensor.distributed.device_mesh import init_device_mesh
from teletensor.distributed.fsdp import fully_shard
from teletensor.distributed.tensor import DTensor, Replicate, Shard
from teletensor.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from teletensor.utils.checkpoint import checkpoint

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


def parameters(rank: int, size: int) -> list:
    """Parameters keep their shapes: an optimizer's rule by dimension selects the same ones. Some parts are empty."""
    module, alone = (nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 1)) for _ in range(2))
    alone.load_state_dict(module.state_dict())
    for p in alone.parameters():
        torch.distributed.broadcast(p.detach(), 0)
    module.load_state_dict(alone.state_dict())
    fully_shard(module)
    for m in (module, alone):
        decayed = [p for p in m.parameters() if p.dim() >= 2]
        others = [p for p in m.parameters() if p.dim() < 2]
        optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 1.0}, {"params": others, "weight_decay": 0.0}], lr=0.1)
        m(torch.ones(2, 3)).square().sum().backward()
        optimizer.step()
    first = module[0].weight
    typing.get_type_hints(type(module))  # libraries read the annotations of a module's class
    return [
        difference(module, alone), [tuple(p.shape) for p in module.parameters()],
        [p.to_local().numel() for p in module.parameters()], [str(p) for p in first.placements],
        first.device_mesh.size(), isinstance(first.grad, DTensor), isinstance(optimizer.state[others[0]], dict),
    ]  # fmt: skip


class Calls(nn.Module):
    """Applies functions of a block's layers, which may be activation checkpoints."""

    def __init__(self, reentrant: bool | None):
        super().__init__()
        self.up, self.down, self.reentrant = nn.Linear(4, 8), nn.Linear(8, 4), reentrant

    def forward(self, x):
        if self.reentrant is None:
            return x + self.down(torch.tanh(self.up(x)))
        hidden = checkpoint(lambda t: torch.tanh(self.up(t)), x, use_reentrant=self.reentrant)
        return x + checkpoint(lambda t: self.down(t), hidden, use_reentrant=self.reentrant)


def checkpoints(rank: int, size: int) -> list[float]:
    """Activation checkpoints inside units, around units, and in a single unit; prefetch lists; another dimension."""

    def chain(inner: bool | None = None) -> nn.Sequential:
        torch.manual_seed(3)
        return nn.Sequential(*(Calls(inner) for _ in range(3)))

    def gradients(module: nn.Module, outer: bool | None = None) -> list:
        x = torch.ones(2, 4, requires_grad=True)
        y = x
        if outer is None:
            y = module(y)
        else:
            for block in module:
                y = checkpoint(block, y, use_reentrant=outer)
        y.square().sum().backward()
        grads = [p.grad for p in module.parameters()]
        return [x.grad, *(g.full_tensor() if isinstance(g, DTensor) else g for g in grads)]

    expected = gradients(chain())
    found = []
    for inner, outer, units in ((True, None, "blocks"), (False, None, "blocks"), (None, True, "blocks"), (None, False, "blocks"),
                                (False, None, "root"), (None, None, "prefetch"), (None, None, "dim")):  # fmt: skip
        module = chain(inner)
        place = (lambda p: Shard(p.dim() - 1)) if units == "dim" else None
        for block in () if units == "root" else module:
            fully_shard(block, shard_placement_fn=place)
        if outer is None:
            fully_shard(module)
        if units == "prefetch":
            module[0].set_modules_to_forward_prefetch([module[1], module[2]])
            module[2].set_modules_to_backward_prefetch([module[1], module[0]])
        pairs = zip(expected, gradients(module, outer), strict=True)
        found.append(max((a - b).abs().max().item() for a, b in pairs))
    return found


def passes(rank: int, size: int) -> list:
    """Two forward passes before backward, a graph that is kept, changed parameters, and a backward pass that fails."""
    module, alone = shard(tower()), tower()
    (x, _), (x2, _) = batch(0), batch(1)
    for m in (module, alone):
        loss = m(x).square().mean() + m(x2).square().mean()
        loss.backward(retain_graph=True)
        loss.backward()
        torch.optim.SGD(m.parameters(), lr=0.1).step()
    results: list = [difference(module, alone)]
    loss = module(x).sum()
    with torch.no_grad():
        module.blocks[0].up.weight.mul_(1.0)
    try:
        loss.backward()
    except RuntimeError as error:
        results.append("modified by an inplace operation" in str(error))
    hook = module.blocks[0].register_full_backward_hook(lambda *_: 1 / 0)
    try:
        module(x).sum().backward()
    except ZeroDivisionError:
        hook.remove()
    module.zero_grad()
    module.reset_iter_state()
    train(module, rank, size, steps=1)
    train(alone, steps=1)
    return [*results, difference(module, alone)]


def state_dicts(rank: int, size: int) -> list:
    """A module on the meta device gets the values of rank 0, also its optimizer's; then reset_parameters()."""
    full = StateDictOptions(full_state_dict=True, cpu_offload=True)
    from_first = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    module = shard(tower())
    optimizer = train(module, rank, size, steps=2)
    saved = get_model_state_dict(module, options=full), get_optimizer_state_dict(module, optimizer, options=full)
    with torch.device("meta"):
        other = shard(tower(2))
    set_model_state_dict(other, saved[0], options=from_first)
    again = torch.optim.AdamW(other.parameters(), lr=1e-2, eps=1e-4)
    set_optimizer_state_dict(other, again, saved[1], options=from_first)
    x, y = batch(2)
    for m, o in ((module, optimizer), (other, again)):
        o.zero_grad()
        loss_of(m, part(x, rank, size), part(y, rank, size)).backward()
        o.step()
    pairs = zip(module.parameters(), other.parameters(), strict=True)
    differences = max((p.full_tensor() - q.full_tensor()).abs().max().item() for p, q in pairs)
    with torch.device("meta"):
        third = shard(tower())
    try:
        third(x)
    except RuntimeError as error:
        message = "materialized from meta device" in str(error)
    third.to_empty(device="cpu")
    for m in third.modules():
        if hasattr(m, "reset_parameters"):
            m.reset_parameters()
    return [len(saved[0]) > 0, differences, message, bool(third(x).isfinite().all())]


def unused(rank: int, size: int) -> list:
    """A parameter that no rank uses has no gradient; one that another rank uses has."""
    module = fully_shard(nn.Linear(4, 4))
    unit = module._fsdp_unit
    unit.reduce([torch.ones(4, 4), torch.ones(4) if rank == 0 else None])
    fsdp._unit.flush()
    both = [p.grad is not None for p in module.parameters()]
    module.zero_grad()
    unit.reduce([torch.ones(4, 4), None])
    fsdp._unit.flush()
    neither = [p.grad is not None for p in module.parameters()]
    module.set_reduce_scatter_unused_params(True)
    unit.reduce([torch.ones(4, 4), None])
    fsdp._unit.flush()
    return [both, neither, float(module.bias.grad.full_tensor().sum())]


def scales(rank: int, size: int) -> list:
    """A gradient of one rank that is not finite skips the step on all ranks."""
    module, alone = shard(tower()), tower()
    optimizer, scaler = torch.optim.SGD(module.parameters(), lr=0.1), torch.amp.GradScaler("cpu", init_scale=8.0)
    x, y = batch(0)
    for overflows in (True, False):
        optimizer.zero_grad()
        scaler.scale(loss_of(module, part(x, rank, size), part(y, rank, size))).backward()
        if overflows and rank == 1:
            module.head.weight.grad.to_local()[0] = float("inf")
        scaler.step(optimizer)
        scaler.update()
    loss_of(alone, x, y).backward()
    torch.optim.SGD(alone.parameters(), lr=0.1).step()
    return [scaler.get_scale(), difference(module, alone)]


def tensor_parallel(rank: int, size: int) -> list:
    """Units over parameters that tensor parallelism has divided."""
    mesh = init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("dp", "tp"))
    module, alone = tower(), tower()
    for block in module.blocks:
        parallelize_module(block, mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
    shard(module, mesh=mesh["dp"])
    x, y = batch(0)
    for m, r, s in ((module, mesh["dp"].get_local_rank(), size // 2), (alone, 0, 1)):
        loss_of(m, part(x, r, s), part(y, r, s)).backward()
        for p in m.parameters():
            with torch.no_grad():
                p.add_(p.grad, alpha=-0.1)
    return [difference(module, alone), list(module.blocks[0].up.weight.to_local().shape)]


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
