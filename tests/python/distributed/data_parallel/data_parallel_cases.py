"""DistributedDataParallel beside the same training on one engine. Each function runs on all ranks."""

from __future__ import annotations

import numpy as np

import teletensor as torch
import teletensor.distributed as dist
from teletensor import nn
from teletensor.nn.parallel import DistributedDataParallel

STEPS = 4
BATCH = 12  # of all ranks together; divisible by 1 to 4


def model(seed: int = 1) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(20, 30), nn.Tanh(), nn.Linear(30, 30), nn.Tanh(), nn.Linear(30, 3))


def batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = np.random.default_rng(step)
    return (torch.tensor(generator.standard_normal((BATCH, 20), dtype=np.float32)),
            torch.tensor(generator.integers(0, 3, BATCH)))  # fmt: skip


def part(t: torch.Tensor, rank: int, size: int) -> torch.Tensor:
    return t[rank * BATCH // size : (rank + 1) * BATCH // size]


def loss_of(module: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(module(x), y)


def difference(a: nn.Module, b: nn.Module) -> float:
    """The largest difference of two modules' parameters."""
    return max((p - q).abs().max().item() for p, q in zip(a.parameters(), b.parameters(), strict=True))


def train_alone(steps: int = STEPS) -> nn.Module:
    module = model()
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2)
    for step in range(steps):
        optimizer.zero_grad()
        loss_of(module, *batch(step)).backward()
        optimizer.step()
    return module


def trains(rank: int, size: int, **options) -> float:
    # Other initial values on each rank: the constructor copies those of rank 0.
    module = DistributedDataParallel(model(seed=1 + rank), **options)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2)
    for step in range(STEPS):
        x, y = batch(step)
        optimizer.zero_grad()
        loss_of(module, part(x, rank, size), part(y, rank, size)).backward()
        optimizer.step()
    return difference(module.module, train_alone())


def compressed(rank: int, size: int, name: str) -> float:
    from teletensor.distributed.algorithms.ddp_comm_hooks import default_hooks

    module = DistributedDataParallel(model())
    module.register_comm_hook(None, getattr(default_hooks, name))
    x, y = batch(0)
    loss_of(module, part(x, rank, size), part(y, rank, size)).backward()
    alone = model()
    loss_of(alone, x, y).backward()
    return max(((p.grad - q.grad).abs().max() / q.grad.abs().max()).item()
               for p, q in zip(module.parameters(), alone.parameters(), strict=True))  # fmt: skip


def accumulates(rank: int, size: int) -> float:
    module = DistributedDataParallel(model())
    with module.no_sync():
        for step in range(2):
            x, y = batch(step)
            loss_of(module, part(x, rank, size), part(y, rank, size)).backward()
    x, y = batch(2)
    loss_of(module, part(x, rank, size), part(y, rank, size)).backward()
    alone = model()
    for step in range(3):
        loss_of(alone, *batch(step)).backward()
    return max((p.grad - q.grad).abs().max().item() for p, q in zip(module.parameters(), alone.parameters(), strict=True))


class Branches(nn.Module):
    """A module of which each rank uses another part; no rank uses `never`."""

    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(4, 1, bias=False) for _ in range(4))
        self.never = nn.Parameter(torch.ones(2))

    def forward(self, x, i):
        return self.parts[i](x)


def unused(rank: int, size: int, **options) -> list:
    torch.manual_seed(0)
    module = DistributedDataParallel(Branches(), **options)
    for _ in range(2):
        module.zero_grad()
        module(torch.ones(3, 4), rank).sum().backward()
    return [None if p.grad is None else p.grad.flatten().tolist() for p in module.module.parameters()]


def unused_after_local_passes(rank: int, size: int, hook: bool = False, **options) -> list:
    """Each rank uses one parameter in a pass without synchronization, and another in the next pass."""
    torch.manual_seed(0)
    module = DistributedDataParallel(Branches(), **options)
    if hook:
        module.register_comm_hook(None, lambda state, bucket: module.process_group.allreduce(
            [bucket.buffer().div_(size)]).get_future())  # fmt: skip
    for _ in range(2):
        module.zero_grad()
        with module.no_sync():
            module(torch.ones(3, 4), rank).sum().backward()
        module(torch.ones(3, 4), rank + size).sum().backward()
    return [None if p.grad is None else p.grad.flatten().tolist() for p in module.module.parameters()]


def backward_after_the_group(rank: int, size: int, port: int, **options) -> list:
    """A module whose backward pass never runs is still referenced when its group is gone."""
    results = []
    for attempt in range(2):
        dist.init_process_group("gloo", f"tcp://127.0.0.1:{port + attempt}", world_size=size, rank=rank)
        module = DistributedDataParallel(nn.Linear(2, 2, bias=False), **options)
        if attempt == 0:
            abandoned = module
            abandoned(torch.ones(1, 2)).sum().backward()
            abandoned(torch.ones(1, 2))
        else:
            module(torch.ones(1, 2)).sum().backward()
            results.append(module.module.weight.grad.tolist())
        dist.destroy_process_group()
    return results


def nested(rank: int, size: int) -> str:
    try:
        DistributedDataParallel(nn.Sequential(DistributedDataParallel(nn.Linear(2, 2))))
    except NotImplementedError as error:
        return str(error)
    return ""


def late_static_graph(rank: int, size: int) -> list[str]:
    module = DistributedDataParallel(nn.Linear(2, 2))
    module._set_static_graph()
    module(torch.ones(1, 2)).sum().backward()
    try:
        module._set_static_graph()
    except RuntimeError as error:
        return [str(error), module._get_ddp_logging_data()["error"]]
    return []


def unused_without_the_option(rank: int, size: int) -> str:
    torch.manual_seed(0)
    module = DistributedDataParallel(Branches())
    module(torch.ones(3, 4), rank).sum().backward()
    try:
        return str(module.module.parts[rank].weight.grad.tolist())
    except RuntimeError as error:
        return str(error)


def buffers(rank: int, size: int) -> list[float]:
    module = DistributedDataParallel(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)))
    module.module[1].running_mean.fill_(float(rank))
    module.module[1].eval()
    module(torch.ones(2, 4)).sum().backward()
    return module.module[1].running_mean.tolist()


def buffers_by_option(rank: int, size: int) -> list[list[float]]:
    """The buffers after the constructor, and after a pass before which they were changed, for each combination of options."""
    found = []
    for options in ({}, {"broadcast_buffers": False}, {"forward_sync_buffers": False}):
        norm = nn.BatchNorm1d(1).eval()
        norm.running_mean.fill_(float(rank))
        module = DistributedDataParallel(norm, **options)
        found.append([norm.running_mean.item()])
        norm.running_mean.fill_(float(rank + 2))
        module(torch.ones(2, 1)).sum().backward()
        found[-1].append(norm.running_mean.item())
    return found


def two_modules(rank: int, size: int) -> float:
    """A generator and a discriminator, whose passes reach one of them or both."""
    generator, discriminator = (DistributedDataParallel(nn.Linear(4, 4)) for _ in range(2))
    alone = nn.Linear(4, 4), nn.Linear(4, 4)
    for copy, module in zip(alone, (generator, discriminator), strict=True):
        copy.load_state_dict(module.module.state_dict())
    x = torch.arange(BATCH * 4.0).reshape(BATCH, 4) / 10
    mine = part(x, rank, size)
    differences = []
    for reaches_both in (False, True):
        for g, d, data in ((generator, discriminator, mine), (*alone, x)):
            g.zero_grad()
            d.zero_grad()
            sample = g(data)
            d(sample if reaches_both else sample.detach()).square().mean().backward()
        pairs = [(discriminator, alone[1])] + ([(generator, alone[0])] if reaches_both else [])
        for module, copy in pairs:
            differences += [(p.grad - q.grad).abs().max().item()
                            for p, q in zip(module.parameters(), copy.parameters(), strict=True)]  # fmt: skip
    return max(differences)


def failed_loss(rank: int, size: int) -> str:
    module = DistributedDataParallel(model())
    x, y = batch(0)
    if rank == 1:
        y = y + 1000  # no such class: the loss is an error
    loss_of(module, part(x, rank, size), part(y, rank, size)).backward()
    try:
        next(module.parameters()).grad.tolist()
    except (RuntimeError, IndexError) as error:
        return str(error)
    return "no error"


def recovers(rank: int, size: int) -> float:
    """A pass that fails on one rank, while buckets of another one are reduced, and a pass after it."""
    module = DistributedDataParallel(model(), bucket_cap_mb=0.001)
    x, y = batch(0)
    loss_of(module, part(x, rank, size), part(y + 1000 * rank, rank, size)).backward()
    module.zero_grad()
    loss_of(module, part(x, rank, size), part(y, rank, size)).backward()
    alone = model()
    loss_of(alone, x, y).backward()
    return max((p.grad - q.grad).abs().max().item() for p, q in zip(module.parameters(), alone.parameters(), strict=True))


def large_half_gradients(rank: int, size: int) -> list[float]:
    """The sum of the ranks' gradients exceeds the largest float16; their average does not."""
    module = DistributedDataParallel(nn.Linear(200, 1, bias=False, dtype=torch.float16))
    module(torch.full((1, 200), 40000.0, dtype=torch.float16)).sum().backward()
    return module.module.weight.grad.flatten()[:2].tolist()


def rejected(rank: int, size: int) -> list[str]:
    messages = []
    for options in ({"dim": 1}, {"bucket_cap_mb": 0}, {"device_ids": ["cuda:0"]}, {"mixed_precision": object()}):
        try:
            DistributedDataParallel(nn.Linear(2, 2), **options)
        except (ValueError, NotImplementedError) as error:
            messages.append(str(error))
    try:
        DistributedDataParallel(nn.ReLU())
    except RuntimeError as error:
        messages.append(str(error))
    dist.barrier()
    return messages


def recomputed(rank: int, size: int, **options) -> float:
    """Activations that backward recomputes: the pass of each segment ends before the pass of the module."""
    from teletensor.utils.checkpoint import checkpoint

    class Recomputing(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = model(seed=1 + rank)

        def forward(self, x):
            first, *middle, last = self.layers
            return last(checkpoint(nn.Sequential(*middle), first(x), use_reentrant=False))

    module = DistributedDataParallel(Recomputing(), **options)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2)
    for step in range(STEPS):
        x, y = batch(step)
        optimizer.zero_grad()
        loss_of(module, part(x, rank, size), part(y, rank, size)).backward()
        optimizer.step()
    return difference(module.module.layers, train_alone())


def replicated(rank: int, size: int) -> dict:
    """Training with replicate(), whose submodules recompute their activations."""
    from teletensor.distributed._composable import checkpoint, replicate

    module = model(seed=1)
    names = list(module.state_dict())
    calls = []
    module[1].register_forward_hook(lambda *_: calls.append(1))
    checkpoint(module[2])
    assert replicate(module, bucket_cap_mb=0.001) is module
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2)
    for step in range(STEPS):
        x, y = batch(step)
        optimizer.zero_grad()
        loss_of(module, part(x, rank, size), part(y, rank, size)).backward()
        optimizer.step()
    module.set_requires_gradient_sync(False)
    optimizer.zero_grad()
    loss_of(module, *(part(t, rank, size) for t in batch(0))).backward()
    own = module[0].weight.grad.clone()
    module.set_requires_gradient_sync(True)
    optimizer.zero_grad()
    loss_of(module, *(part(t, rank, size) for t in batch(0))).backward()
    errors = []
    for call in (lambda: replicate(module), lambda: replicate(model(), device_id=[1])):
        try:
            call()
        except (AssertionError, RuntimeError) as error:
            errors.append(str(error).splitlines()[0])
    assert not own.equal(module[0].weight.grad) and isinstance(module, nn.Sequential)
    same = names == list(module.state_dict())
    return {"difference": difference(module, train_alone()), "names": same, "calls": len(calls), "errors": errors}


def wrapped(rank: int, size: int) -> dict:
    """Activations that are recomputed have the same gradients, under the same names."""
    from teletensor.distributed.algorithms._checkpoint import checkpoint_wrapper as cw

    found, (x, y) = {}, batch(0)
    plain = model()
    loss_of(plain, x, y).backward()
    for name, options in {"default": {}, "reentrant": {"checkpoint_impl": cw.CheckpointImpl.REENTRANT}}.items():
        module, calls = model(), []
        cw.apply_activation_checkpointing(
            module, lambda m, options=options: cw.checkpoint_wrapper(m, **options), lambda m: isinstance(m, nn.Linear)
        )
        module[0]._checkpoint_wrapped_module.register_forward_pre_hook(lambda *_, calls=calls: calls.append(1))
        loss_of(module, x.clone().requires_grad_(), y).backward()
        found[name] = [
            len(calls), type(module[0]).__name__, module[0].in_features, list(module.state_dict()) == list(plain.state_dict()),
            [n for n, _ in module[0].named_parameters()] == ["weight", "bias"],
            max((p.grad - q.grad).abs().max().item() for p, q in zip(module.parameters(), plain.parameters(), strict=True)),
        ]  # fmt: skip
        module.load_state_dict(model(seed=5).state_dict())
        assert difference(module, model(seed=5)) == 0
    module = model()
    cw.apply_activation_checkpointing(module, cw.offload_wrapper)
    loss_of(module, x, y).backward()
    found["offloaded"] = max((p.grad - q.grad).abs().max().item() for p, q in zip(module.parameters(), plain.parameters(), strict=True))
    return found


def pickled(rank: int, size: int) -> dict:
    """Saved and copied modules continue the training with the default group."""
    import copy
    import io

    module = DistributedDataParallel(model())
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    x, y = (part(t, rank, size) for t in batch(0))
    loss_of(module, x, y).backward()
    found: dict = {}
    for name, other in (("loaded", torch.load(file, weights_only=False)), ("copied", copy.deepcopy(module))):
        other.zero_grad()
        loss_of(other, x, y).backward()
        pairs = list(zip(module.parameters(), other.parameters(), strict=True))
        found[name] = [type(other) is type(module), all(torch.equal(p.grad, q.grad) and p is not q for p, q in pairs)]
    own = DistributedDataParallel(nn.Linear(1, 1), process_group=dist.new_group(list(range(size))))
    try:
        torch.save(own, io.BytesIO())
    except RuntimeError as error:
        found["error"] = str(error)
    return found
