"""FullyShardedDataParallel beside the same training on one engine. Each function runs on all ranks."""

from __future__ import annotations

import contextlib
import copy
import functools
import gc
import time

import teletensor as torch
import teletensor.distributed as dist
from teletensor import _C, nn
from teletensor.distributed import fsdp
from teletensor.distributed.fsdp import FullyShardedDataParallel as FSDP  # noqa: N817
from teletensor.distributed.fsdp import wrap
from teletensor.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
from teletensor.utils.checkpoint import checkpoint

from ..data_parallel.data_parallel_cases import STEPS, batch, loss_of, model, part, train_alone

POLICIES = {
    "none": None,
    "linear": wrap.ModuleWrapPolicy({nn.Linear}),
    "size": functools.partial(wrap.size_based_auto_wrap_policy, min_num_params=700),
    "transformer": functools.partial(wrap.transformer_auto_wrap_policy, transformer_layer_cls={nn.Linear}),
    "custom": wrap.CustomPolicy(lambda m: {"sharding_strategy": fsdp.ShardingStrategy.SHARD_GRAD_OP}
                                if isinstance(m, nn.Linear) else False),
}  # fmt: skip


def difference(module: FSDP, alone: nn.Module) -> float:
    """The largest difference of the full parameters to those of another module."""
    with FSDP.summon_full_params(module, writeback=False):
        pairs = zip(module.parameters(), alone.parameters(), strict=True)
        return max((p - q).abs().max().item() for p, q in pairs)


def trains(rank: int, size: int, strategy: str = "FULL_SHARD", policy: str = "linear", prefetch: str | None = "BACKWARD_PRE",
           **options) -> float:  # fmt: skip
    module = FSDP(
        model(seed=1 + rank), sharding_strategy=fsdp.ShardingStrategy[strategy], auto_wrap_policy=POLICIES[policy],
        sync_module_states=True, backward_prefetch=prefetch and fsdp.BackwardPrefetch[prefetch], **options,
    )  # fmt: skip
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2)
    for step in range(STEPS):
        x, y = batch(step)
        optimizer.zero_grad()
        loss_of(module, part(x, rank, size), part(y, rank, size)).backward()
        optimizer.step()
    return difference(module, train_alone())


class Block(nn.Module):
    """A residual block with dropout, whose forward takes and returns nested values."""

    def __init__(self, width: int, dropout: float = 0.0):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, values: dict, *, scale: float = 1.0) -> tuple:
        x = values["x"]
        return x + scale * self.dropout(self.down(torch.tanh(self.up(self.norm(x))))), values["count"] + 1


class Tower(nn.Module):
    def __init__(self, width: int = 20, depth: int = 3, dropout: float = 0.0):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width, dropout) for _ in range(depth))
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        count = torch.tensor(0)
        for block in self.blocks:
            x, count = block({"x": x, "count": count}, scale=0.5)
        return self.head(x)


def tower(seed: int = 1, **options) -> Tower:
    torch.manual_seed(seed)
    return Tower(**options)


BLOCKS = wrap.ModuleWrapPolicy({Block})


def train(
    module: nn.Module, rank: int = 0, size: int = 1, steps: int = STEPS, lr: float = 1e-2
) -> torch.optim.Optimizer:
    # With the default eps, AdamW amplifies the rounding of gradients near 0.
    optimizer = torch.optim.AdamW(module.parameters(), lr=lr, eps=1e-4)
    for step in range(steps):
        x, y = batch(step)
        optimizer.zero_grad()
        loss_of(module, part(x, rank, size), part(y, rank, size)).backward()
        optimizer.step()
    return optimizer


def trained_alone(module: nn.Module, **options) -> nn.Module:
    train(module, **options)
    return module


def nested_values(rank: int, size: int) -> float:
    """Arguments and results in containers, and two levels of units."""
    inner = wrap.ModuleWrapPolicy({Block, nn.Linear})
    differences = []
    for policy in (BLOCKS, inner):
        module = FSDP(tower(), auto_wrap_policy=policy)
        train(module, rank, size)
        differences.append(difference(module, trained_alone(tower())))
    return max(differences)


def dropout(rank: int, size: int) -> float:
    """Recomputation in backward draws the same numbers: the training is that of units that keep their parameters."""
    modules = []
    for strategy in (fsdp.ShardingStrategy.FULL_SHARD, fsdp.ShardingStrategy.SHARD_GRAD_OP):
        module = FSDP(tower(dropout=0.3), auto_wrap_policy=BLOCKS, sharding_strategy=strategy)
        torch.manual_seed(7 + rank)
        train(module, rank, size)
        modules.append(module)
    with FSDP.summon_full_params(modules[1], writeback=False):
        return difference(modules[0], modules[1])


def buffers(rank: int, size: int) -> list[float]:
    """Running statistics change once per step, as without sharding."""
    module, alone = (
        nn.Sequential(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)), nn.Linear(4, 1)) for _ in range(2)
    )
    alone.load_state_dict(module.state_dict())
    dist.broadcast(alone[0][0].weight.detach(), 0)
    alone[0][0].bias.detach().zero_()
    module.load_state_dict(alone.state_dict())
    sharded = FSDP(module, auto_wrap_policy=wrap.ModuleWrapPolicy({nn.Sequential}), sync_module_states=True)
    x = torch.arange(24.0).reshape(6, 4) + rank
    for _ in range(2):
        sharded(x).sum().backward()
        alone(x).sum().backward()
    a, b = (m.state_dict() for m in (sharded, alone))
    return [
        (a[key].float() - b[key].float()).abs().max().item() for key in ("0.1.running_mean", "0.1.num_batches_tracked")
    ]


def accumulates(rank: int, size: int) -> float:
    module, alone = FSDP(tower(), auto_wrap_policy=BLOCKS), tower()
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (module, alone)]
    for step in range(3):
        x, y = batch(step)
        context = module.no_sync() if step < 2 else contextlib.nullcontext()
        with context:
            loss_of(module, part(x, rank, size), part(y, rank, size)).backward()
        loss_of(alone, x, y).backward()
    for step in range(3, 5):  # each of these synchronizes
        x, y = batch(step)
        loss_of(module, part(x, rank, size), part(y, rank, size)).backward()
        loss_of(alone, x, y).backward()
    for optimizer in optimizers:
        optimizer.step()
    return difference(module, alone)


def clips(rank: int, size: int, norm_type: float, **options) -> list[float]:
    module, alone = FSDP(tower(), auto_wrap_policy=BLOCKS, **options), tower()
    x, y = batch(0)
    loss_of(module, part(x, rank, size), part(y, rank, size)).backward()
    loss_of(alone, x, y).backward()
    norms = [module.clip_grad_norm_(0.1, norm_type), torch.nn.utils.clip_grad_norm_(alone.parameters(), 0.1, norm_type)]
    for m in (module, alone):
        torch.optim.SGD(m.parameters(), lr=1.0).step()
    return [abs(norms[0].item() - norms[1].item()), difference(module, alone)]


def full_state(rank: int, size: int, use_orig_params: bool) -> list:
    module = FSDP(tower(), auto_wrap_policy=BLOCKS, use_orig_params=use_orig_params)
    train(module, rank, size)
    state = module.state_dict()
    alone = tower(seed=9)
    alone.load_state_dict(state)
    other = FSDP(tower(seed=5), auto_wrap_policy=BLOCKS)
    other.load_state_dict(state)
    with FSDP.state_dict_type(module, fsdp.StateDictType.FULL_STATE_DICT, fsdp.FullStateDictConfig(True, True)):
        count = len(module.state_dict())
    return [difference(module, alone), difference(other, alone), count, list(state) == list(alone.state_dict())]


def sharded_state(rank: int, size: int, kind: str) -> list:
    module, other = (FSDP(tower(seed), auto_wrap_policy=BLOCKS) for seed in (1, 5))
    train(module, rank, size)
    for m in (module, other):
        FSDP.set_state_dict_type(m, fsdp.StateDictType[kind])
    state = module.state_dict()
    other.load_state_dict({k: v.clone() for k, v in state.items()})
    full = [module, other]
    with FSDP.summon_full_params(full[1], writeback=False):
        return [difference(full[0], full[1]), sum(v.numel() for v in state.values())]


def optimizer_state(rank: int, size: int, use_orig_params: bool) -> list:
    """Training that continues from a saved optimizer state is that without interruption, also with other units."""
    module = FSDP(tower(), auto_wrap_policy=BLOCKS, use_orig_params=use_orig_params)
    optimizer = train(module, rank, size, steps=2)
    FSDP.set_state_dict_type(
        module, fsdp.StateDictType.FULL_STATE_DICT, None, fsdp.FullOptimStateDictConfig(rank0_only=False)
    )
    saved = FSDP.optim_state_dict(module, optimizer)
    other = FSDP(tower(seed=4), auto_wrap_policy=None, use_orig_params=use_orig_params)
    other.load_state_dict(module.state_dict())
    again = torch.optim.AdamW(other.parameters(), lr=1e-2, eps=1e-4)
    again.load_state_dict(FSDP.optim_state_dict_to_load(other, again, saved))
    for step in range(2, STEPS):
        x, y = batch(step)
        for m, o in ((module, optimizer), (other, again)):
            o.zero_grad()
            loss_of(m, part(x, rank, size), part(y, rank, size)).backward()
            o.step()
    alone = trained_alone(tower())
    return [difference(module, alone), difference(other, alone), len(saved["state"])]


def summons(rank: int, size: int) -> list:
    module, alone = FSDP(tower(), auto_wrap_policy=BLOCKS), tower()
    with FSDP.summon_full_params(module):
        same = all((p == q).all().item() for p, q in zip(module.parameters(), alone.parameters(), strict=True))
        with torch.no_grad():
            for p in module.parameters():
                p.add_(1.0)
    with torch.no_grad():
        for p in alone.parameters():
            p.add_(1.0)
    with FSDP.summon_full_params(module, writeback=False), torch.no_grad():
        for p in module.parameters():
            p.zero_()
    return [same, difference(module, alone)]


def mixed_precision(rank: int, size: int) -> list:
    mixed = fsdp.MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32, buffer_dtype=torch.bfloat16)
    module = FSDP(tower(), auto_wrap_policy=BLOCKS, mixed_precision=mixed)
    x, _ = batch(0)
    dtype = str(module(x).dtype)
    train(module, rank, size)
    dtypes = {str(p.dtype) for p in module.parameters()} | {str(p.grad.dtype) for p in module.parameters()}
    return [dtype, sorted(dtypes), difference(module, trained_alone(tower()))]


def batch_norm_keeps_precision(rank: int, size: int) -> list[str]:
    inner = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    seen = []
    inner[1].register_forward_hook(lambda module, args, result: seen.append(str(result.dtype)))
    module = FSDP(inner, mixed_precision=fsdp.MixedPrecision(param_dtype=torch.bfloat16),
                  auto_wrap_policy=wrap.ModuleWrapPolicy({nn.Linear}))  # fmt: skip
    result = module(torch.ones(3, 4))
    result.sum().backward()
    return [seen[0], str(result.dtype)]


def checkpointed(rank: int, size: int) -> float:
    """Activation checkpoints outside and inside of units."""

    class Outside(nn.Sequential):
        def forward(self, x):
            for child in self:
                x = checkpoint(child, x, use_reentrant=False)
            return x

    differences = []
    for strategy in ("FULL_SHARD", "SHARD_GRAD_OP"):
        torch.manual_seed(1)
        layers = [nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 3)]
        module = FSDP(
            Outside(*layers), auto_wrap_policy=POLICIES["linear"], sharding_strategy=fsdp.ShardingStrategy[strategy]
        )
        torch.manual_seed(1)
        alone = nn.Sequential(nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 3))
        train(module, rank, size)
        train(alone)
        differences.append(difference(module, alone))
    return max(differences)


def ignored(rank: int, size: int) -> list:
    inner = tower()
    module = FSDP(inner, auto_wrap_policy=BLOCKS, ignored_states=[inner.head.weight, inner.head.bias])
    names = [name for name, _ in module.named_parameters()]
    x, y = batch(0)
    loss_of(module, x, y).backward()
    alone = tower()
    loss_of(alone, x, y).backward()
    return [
        any("head.weight" in n for n in names),
        (inner.head.weight.grad - alone.head.weight.grad).abs().max().item(),
    ]


def frozen(rank: int, size: int) -> float:
    inner, alone = tower(), tower()
    for m in (inner, alone):
        m.blocks[0].up.weight.requires_grad_(False)
        m.blocks[1].requires_grad_(False)
    module = FSDP(inner, auto_wrap_policy=BLOCKS, use_orig_params=True)
    for m, r, s in ((module, rank, size), (alone, 0, 1)):
        optimizer = torch.optim.SGD([p for p in m.parameters() if p.requires_grad], lr=0.1)
        for step in range(2):
            x, y = batch(step)
            optimizer.zero_grad()
            loss_of(m, part(x, r, s), part(y, r, s)).backward()
            optimizer.step()
    return difference(module, alone)


def evaluates(rank: int, size: int) -> float:
    module, alone = FSDP(tower(), auto_wrap_policy=BLOCKS), tower()
    x, _ = batch(0)
    with torch.no_grad():
        results = [(module(x) - alone(x)).abs().max().item() for _ in range(2)]
        with FSDP.summon_full_params(module):
            for m in (module, alone):
                for p in m.parameters():
                    p.mul_(0.5)
        results.append((module(x) - alone(x)).abs().max().item())
    return max(results)


def mesh_and_offload(rank: int, size: int) -> float:
    mesh = dist.init_device_mesh("cpu", (size,))
    differences = []
    for options in ({"device_mesh": mesh}, {"cpu_offload": fsdp.CPUOffload(True)}, {"device_id": torch.device("cpu")}):
        module = FSDP(tower(), auto_wrap_policy=BLOCKS, **options)
        train(module, rank, size, steps=2)
        differences.append(difference(module, trained_alone(tower(), steps=2)))
    module = fsdp.fully_shard(tower(), mesh=mesh)
    train(module, rank, size, steps=2)
    pairs = zip(module.parameters(), trained_alone(tower(), steps=2).parameters(), strict=True)
    return max(*differences, *((p.full_tensor() - q).abs().max().item() for p, q in pairs))


def subgroup(rank: int, size: int) -> float:
    """Two groups of ranks train their own modules."""
    half = size // 2
    groups = [dist.new_group(range(half)), dist.new_group(range(half, size))]
    module = FSDP(tower(seed=rank // half), groups[rank // half], auto_wrap_policy=BLOCKS)
    train(module, rank % half, half, steps=2)
    return difference(module, trained_alone(tower(seed=rank // half), steps=2))


class Tied(nn.Module):
    """A model whose output layer has the embedding's weight."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(3, 20)
        self.block = Block(20)
        self.head = nn.Linear(20, 3, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, x):
        y = self.embedding(x.argmax(1) % 3) + x
        return self.head(self.block({"x": y, "count": 0})[0])


def tied(rank: int, size: int, use_orig_params: bool) -> list:
    torch.manual_seed(1)
    inner = Tied()
    alone = copy.deepcopy(inner)
    alone.head.weight = alone.embedding.weight
    module = FSDP(inner, auto_wrap_policy=BLOCKS, use_orig_params=use_orig_params)
    train(module, rank, size)
    train(alone)
    try:
        FSDP(Tied(), auto_wrap_policy=POLICIES["linear"])
        message = ""
    except NotImplementedError as error:
        message = str(error)
    with FSDP.summon_full_params(module, writeback=False):
        shares = inner.head.weight is inner.embedding.weight
    return [difference(module, alone), shares, message]


def two_passes(rank: int, size: int) -> float:
    """A module that runs twice before backward, as in a GAN, and whose graph is used twice."""
    module, alone = FSDP(tower(), auto_wrap_policy=BLOCKS), tower()
    for m, r, s in ((module, rank, size), (alone, 0, 1)):
        (x, y), (x2, y2) = batch(0), batch(1)
        first = loss_of(m, part(x, r, s), part(y, r, s))
        second = loss_of(m, part(x2, r, s), part(y2, r, s))
        first.backward(retain_graph=True)
        (first + 0.5 * second).backward()
        torch.optim.SGD(m.parameters(), lr=0.1).step()
    return difference(module, alone)


class Scaled(nn.Linear):
    """A module with Python state: each call multiplies by the number of calls."""

    calls = 0

    def forward(self, x):
        self.calls += 1
        return super().forward(x) * self.calls


def python_state(rank: int, size: int) -> list:
    """Forward runs once: the gradient is that of the first call."""
    results = []
    for wrap_in in (lambda m: FSDP(m, auto_wrap_policy=wrap.ModuleWrapPolicy({Scaled})),
                    lambda m: fsdp.fully_shard([*m, m]) and m):  # fmt: skip
        inner = nn.Sequential(Scaled(2, 2, bias=False), Scaled(2, 2, bias=False))
        for child in inner:
            nn.init.ones_(child.weight)
        wrap_in(inner)(torch.ones(1, 2)).sum().backward()
        grads = [p.grad for m in inner for p in m.parameters()]
        whole = [g.full_tensor() if hasattr(g, "full_tensor") else g for g in grads]
        results += [m.calls for m in inner] + sorted({v for g in whole for v in g.reshape(-1).tolist()})
    return results


def failed_loss(rank: int, size: int) -> str:
    module = FSDP(tower(), auto_wrap_policy=BLOCKS)
    x, y = batch(0)
    if rank == 1:
        y = y + 1000  # no such class: the loss is an error
    loss = loss_of(module, part(x, rank, size), part(y, rank, size))
    try:
        loss.backward()  # may wait for the engine
        next(module.parameters()).grad.tolist()
    except (RuntimeError, IndexError) as error:
        return str(error)
    return "no error"


def input_gradients(rank: int, size: int) -> float:
    """Gradients of a unit's inputs, and of a frozen module's."""
    module, alone = FSDP(tower(), auto_wrap_policy=BLOCKS), tower()
    x, y = batch(0)
    differences = []
    for _ in range(2):
        grads = []
        for m in (module, alone):
            inputs = x.clone().requires_grad_()
            loss_of(m, inputs, y).backward()
            grads.append(inputs.grad)
        differences.append((grads[0] - grads[1]).abs().max().item())
        module.requires_grad_(False)
    return max(differences)


def skips_steps(rank: int, size: int, sharded: bool) -> list:
    """A gradient of one rank's part that is not finite skips the step on all ranks."""
    module = FSDP(tower(), auto_wrap_policy=BLOCKS)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    scaler = (ShardedGradScaler if sharded else torch.amp.GradScaler)("cpu", init_scale=8.0)
    x, y = batch(0)
    scales = []
    for overflows in (True, False):
        optimizer.zero_grad()
        scaler.scale(loss_of(module, part(x, rank, size), part(y, rank, size))).backward()
        if overflows and rank == 1:
            next(module.parameters()).grad[0] = float("inf")
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    alone = tower()
    loss_of(alone, x, y).backward()
    torch.optim.SGD(alone.parameters(), lr=0.1).step()
    return [scales, difference(module, alone)]


def held_bytes() -> int:
    """Bytes of this session's tensors in the engine. A collective that has ended may release its buffers later."""
    held = []
    for _ in range(5):
        held.append(_C.ops.memory_stats(0).tolist()[-3])
        time.sleep(0.01)
    return min(held)


def peak_bytes() -> int:
    return _C.ops.memory_stats(0).tolist()[-2]


def memory(rank: int, size: int, strategy: str) -> dict:
    """Bytes of parameters, gradients and optimizer state, and by how much a step exceeds them, in units of a layer."""
    width, depth = 256, 8
    layer = (width * width + width) * 4
    gc.collect()
    start = held_bytes()
    torch.manual_seed(1)
    inner = nn.Sequential(*(nn.Linear(width, width) for _ in range(depth)))
    if strategy == "fully_shard":
        for child in inner:
            fsdp.fully_shard(child)
        module = fsdp.fully_shard(inner)
    else:
        module = FSDP(inner, auto_wrap_policy=POLICIES["linear"], sharding_strategy=fsdp.ShardingStrategy[strategy])
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3)
    x = torch.ones(1, width)
    for _ in range(2):
        optimizer.zero_grad()
        module(x).sum().backward()
        optimizer.step()
    held = held_bytes() - start
    optimizer.zero_grad()
    _C.ops.reset_peak_memory(0)
    before = held_bytes() - start
    loss = module(x).sum()
    after_forward = held_bytes() - start - before
    loss.backward()
    return {"held": held / layer, "forward": after_forward / layer, "peak": (peak_bytes() - start - held) / layer}


def rejected(rank: int, size: int) -> list[str]:
    messages = []
    for options in (
        {"param_init_fn": print}, {"limit_all_gathers": False},
        {"mixed_precision": fsdp.MixedPrecision(keep_low_precision_grads=True)}, {"ignored_states": ["weight"]},
    ):  # fmt: skip
        try:
            FSDP(nn.Linear(2, 2), **options)
        except (NotImplementedError, TypeError) as error:
            messages.append(str(error))
    try:
        FSDP(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2, dtype=torch.float64)))
    except ValueError as error:
        messages.append(str(error))
    module = FSDP(nn.Linear(2, 2))
    for call in (
        lambda: FSDP.summon_full_params(module, with_grads=True, writeback=False).__enter__(),
        lambda: FSDP.summon_full_params(module, rank0_only=True).__enter__(),
        lambda: module.register_comm_hook(None, None),
        module.double,
        lambda: copy.deepcopy(module),
        lambda: module.load_state_dict(module.state_dict(), assign=True),
        lambda: module(torch.ones(1, 2)).sum().backward(create_graph=True),
    ):
        try:
            call()
        except NotImplementedError as error:
            messages.append(str(error))
    return messages
