"""Distributed tensors and tensor parallelism. Each function runs on all ranks, or in a process that controls engines."""

from __future__ import annotations

import copy
import functools

import teletensor as torch
import teletensor.distributed as dist
import teletensor.nn as nn
import teletensor.nn.functional as F
from teletensor.distributed.device_mesh import init_device_mesh
from teletensor.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
    full,
    ones,
    rand,
    zeros,
)  # fmt: skip
from teletensor.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)  # fmt: skip


@functools.cache
def _engines(count: int):
    return torch.connect_all(count)


def controlled(rank: int, size: int, name: str, engines: int, *arguments):
    """Runs a function of this module in a process that controls this number of engines."""
    _engines(engines)
    return globals()[name](0, engines, *arguments)


def _difference(a, b) -> float:
    a = a.full_tensor() if isinstance(a, DTensor) else a
    b = b.full_tensor() if isinstance(b, DTensor) else b
    return (a.detach() - b.detach()).abs().max().item()


class FeedForward(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.head = width // heads
        self.norm = nn.LayerNorm(width)
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x):
        y = self.norm(x)
        q, k, v = (f(y).unflatten(-1, (-1, self.head)).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(y.transpose(1, 2).flatten(-2))


class Model(nn.Module):
    def __init__(self, classes: int = 12, width: int = 8, heads: int = 4, layers: int = 2):
        super().__init__()
        self.embedding = nn.Embedding(classes, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(Attention(width, heads), FeedForward(width)) for _ in range(layers)
        )
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def _plan() -> dict:
    return {
        "embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1), use_local_output=False),
        "blocks.*.*.norm": SequenceParallel(),
        "blocks.*.0": PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Shard(1)),
        **{f"blocks.*.0.{name}": ColwiseParallel(use_local_output=False) for name in "qkv"},
        "blocks.*.0.out": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
        "blocks.*.1.up": ColwiseParallel(use_local_output=False),
        "blocks.*.1.down": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
        "norm": SequenceParallel(),
        "head": ColwiseParallel(output_layouts=Shard(-1), use_local_output=False),
    }


def _loss(scores, tokens):
    if isinstance(scores, DTensor) and not isinstance(tokens, DTensor):
        tokens = distribute_tensor(tokens, scores.device_mesh, [Replicate()])
    return F.cross_entropy(scores.flatten(0, 1), tokens.flatten())


def _train(model, tokens, steps: int = 3) -> list[float]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(steps):
        with loss_parallel():
            loss = _loss(model(tokens), tokens)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        losses.append(loss.item())
    return losses


def tensor_parallel_training(rank: int, size: int) -> dict:
    """A transformer with tensor and sequence parallelism, beside the same model on one engine."""
    torch.manual_seed(1)
    single = Model()
    tokens = torch.randint(0, 12, (3, 8))
    divided = parallelize_module(copy.deepcopy(single), init_device_mesh("cpu", (size,)), _plan())
    losses, expected = _train(divided, tokens), _train(single, tokens)
    differences = [
        _difference(p, q) for (_, p), (_, q) in zip(divided.named_parameters(), single.named_parameters(), strict=True)
    ]
    weight = divided.blocks[0][1].up.weight
    return {
        "losses": losses, "expected": expected, "difference": max(differences), "placement": str(weight.placements[0]),
        "local": list(weight.to_locals()[0].shape), "names": list(divided.state_dict()) == list(single.state_dict()),
    }  # fmt: skip


def data_parallel_training(rank: int, size: int) -> dict:
    """A batch that is divided among the ranks, and a model whose parameters are replicated."""
    mesh = init_device_mesh("cpu", (size,))
    torch.manual_seed(6)
    single = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(27, 5))
    divided = distribute_module(copy.deepcopy(single), mesh)
    x, y = torch.randn(10, 1, 8, 8), torch.randint(0, 5, (10,))
    placed = [distribute_tensor(t, mesh, [Shard(0)]) for t in (x, y)]
    losses = []
    for model, (images, labels) in ((divided, placed), (single, (x, y))):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for _ in range(4):
            loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    return {"losses": losses, "placement": str(divided(placed[0]).placements)}


def local_outputs(rank: int, size: int) -> dict:
    """Styles with ordinary tensors as inputs and outputs, and their gradients."""
    mesh = init_device_mesh("cpu", (size,))
    torch.manual_seed(2)
    single = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 6))
    divided = parallelize_module(copy.deepcopy(single), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    x, y = torch.randn(5, 6, requires_grad=True), None
    y = x.detach().clone().requires_grad_()
    out, expected = divided(x), single(y)
    (out.square().sum()).backward()
    (expected.square().sum()).backward()
    return {
        "type": type(out).__name__, "output": _difference(out, expected), "input": _difference(x.grad, y.grad),
        "weight": _difference(divided[0].weight.grad, single[0].weight.grad),
        "bias": _difference(divided[2].bias.grad, single[2].bias.grad),
    }  # fmt: skip


def two_dimensions(rank: int, size: int) -> dict:
    """Data and tensor parallelism on a mesh of two dimensions."""
    mesh = init_device_mesh("cpu", (2, 2))
    torch.manual_seed(3)
    a, b = torch.randn(5, 7, requires_grad=True), torch.randn(7, 3, requires_grad=True)
    results = {}
    for first in (Shard(0), Shard(1), Replicate()):
        for second in (Shard(0), Shard(1), Replicate()):
            x = distribute_tensor(a, mesh, [first, second])
            w = distribute_tensor(b, mesh, [second, first])
            y = (x @ w).relu()
            y.sum().backward()
            a.grad = b.grad = None
            expected = (a @ b).relu()
            expected.sum().backward()
            again = x.redistribute(placements=[second, first]).redistribute(placements=[first, second])
            results[f"{first} {second}"] = max(
                _difference(y, expected), _difference(x.grad, a.grad), _difference(w.grad, b.grad), _difference(again, a),
            )  # fmt: skip
    return results


def in_place(rank: int, size: int) -> dict:
    mesh = init_device_mesh("cpu", (size,))
    torch.manual_seed(4)
    a, b = torch.randn(6, 4), torch.randn(6, 4)
    results = {}
    for placement in (Shard(0), Shard(1), Replicate()):
        x, y = distribute_tensor(a, mesh, [placement]), distribute_tensor(b, mesh, [Shard(0)])
        identity = id(x)
        x.add_(y).mul_(2)
        x[1] = 5.0
        x[:, 2:] = 0
        x.copy_(x.flip(0))
        try:
            x[1:].zero_()
            x[:, 1:].zero_()
            raise AssertionError("a copy was written")
        except RuntimeError as error:
            assert placement == Replicate() or "is a copy" in str(error), error
        except AssertionError:
            assert placement == Replicate()
        z = (a + b) * 2
        z[1] = 5.0
        z[:, 2:].zero_()
        z.copy_(z.flip(0))
        if placement != Shard(0):
            z[1:].zero_()
        if placement == Replicate():
            z[:, 1:].zero_()
        assert id(x) == identity and x.placements == (placement,)
        results[str(placement)] = _difference(x, z)
    return results


def creation(rank: int, size: int) -> dict:
    mesh = init_device_mesh("cpu", (size,))
    torch.manual_seed(5)
    divided, whole = rand(7, 3, device_mesh=mesh, placements=[Shard(0)]), None
    dropped = F.dropout(ones(8, 8, device_mesh=mesh, placements=[Shard(1)]), 0.5)
    torch.manual_seed(5)
    whole = torch.rand(7, 3)
    expected = torch.empty(8, 8).bernoulli_(0.5) / 0.5
    return {
        "rand": _difference(divided, whole), "dropout": _difference(dropped, expected),
        "full": full((3, 2), 2.5, device_mesh=mesh, placements=[Shard(1)]).full_tensor().tolist(),
        "zeros": zeros((2, 2), device_mesh=mesh).placements == (Replicate(),),
        "sizes": [list(t.shape) for t in divided.to_locals()],
    }  # fmt: skip


def errors(rank: int, size: int) -> list[str]:
    mesh = init_device_mesh("cpu", (size,))
    x = distribute_tensor(torch.ones(4, 4), mesh, [Shard(0)])
    messages = []
    for call in (
        lambda: x + torch.ones(4, 4),
        lambda: distribute_tensor(torch.ones(2), mesh, [Shard(1)]),
        lambda: distribute_tensor(torch.ones(2), mesh, [Shard(0), Shard(0)]),
        lambda: x.redistribute(placements=[Partial()]),
        lambda: DTensor(torch.ones(2)),
        lambda: x.sum(0).backward(),
        lambda: x @ distribute_tensor(torch.ones(5), mesh),
        lambda: parallelize_module(nn.Conv2d(1, 1, 1), mesh, ColwiseParallel()),
        lambda: torch.autograd.backward([x.requires_grad_().sum()], [torch.tensor(1.0)]),
    ):
        try:
            call()
            messages.append("no error")
        except Exception as error:  # noqa: BLE001 - the test compares the texts
            messages.append(f"{type(error).__name__}: {error}")
    return messages


def placement_of_outputs(rank: int, size: int) -> dict:
    """PrepareModuleInput and PrepareModuleOutput, and distribute_module with functions for inputs and outputs."""
    mesh = init_device_mesh("cpu", (size,))
    seen = {}

    class Double(nn.Module):
        def forward(self, x):
            seen["input"] = (type(x).__name__, str(x.placements[0]))
            return x * 2

    x = torch.arange(8.0).reshape(4, 2)
    module = parallelize_module(Double(), mesh, PrepareModuleInput(input_layouts=Replicate(), desired_input_layouts=Shard(0)))
    parallelize_module(module, mesh, PrepareModuleOutput(output_layouts=Shard(0), desired_output_layouts=Replicate()))
    placed = distribute_module(
        nn.Linear(2, 3), mesh, input_fn=lambda m, inputs, mesh: distribute_tensor(inputs[0], mesh, [Shard(0)]),
        output_fn=lambda m, output, mesh: output.full_tensor(),
    )  # fmt: skip
    out = placed(x)
    return {"output": module(x).tolist() == (x * 2).tolist(), "seen": seen["input"], "full": list(out.shape)}


def failure_on_one_rank(rank: int, size: int) -> list[str]:
    """A failed computation of one rank's part is an error on all ranks."""
    mesh = init_device_mesh("cpu", (size,))
    dist.barrier()
    values = torch.tensor([1.0, 2.0])
    bad = values[torch.tensor([7])] if rank == 1 else values[torch.tensor([0])]
    x = DTensor.from_local(bad, mesh, [Shard(0)])
    try:
        x.sum().item()
    except Exception as error:  # noqa: BLE001 - the test compares the texts
        return [type(error).__name__, str(error), dist.get_rank()]
    return ["no error"]


def lost_engine(rank: int, size: int) -> dict:
    """An engine of a controller is killed: the others' tensors remain."""
    import os
    import signal
    import subprocess

    torch.connect_all(3)
    x = ones(6, 2, device_mesh=init_device_mesh("cpu", (3,)), placements=[Shard(0)])
    before = x.sum().item()
    children = subprocess.run(["pgrep", "-P", str(os.getpid()), "teletensord"], capture_output=True, text=True, check=True)
    os.kill(int(children.stdout.split()[-1]), signal.SIGKILL)
    try:
        x.sum().item()
        message = ""
    except (RuntimeError, ConnectionError) as error:
        message = str(error)
    return {"before": before, "message": message, "after": torch.ones(3).sum().item()}


class _PartlyParallel(nn.Module):
    """A block whose two linear layers are parallel, as in the usual plan, between a norm and a head that are not."""

    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down, self.head = nn.LayerNorm(8), nn.Linear(8, 12), nn.Linear(12, 8), nn.Linear(8, 3)

    def forward(self, x):
        return self.head(x + self.down(F.gelu(self.up(self.norm(x)))))


OPTIMIZERS = {
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.05), "adam": lambda p: torch.optim.Adam(p, lr=0.05, foreach=False, amsgrad=True),
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1), "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01), "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1),
}  # fmt: skip


def partly_parallel_training(rank: int, size: int) -> dict[str, list[list[float]]]:
    """The losses of a model of which some layers are parallel, and of the same model on each rank alone."""
    from teletensor.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("cpu", (size,))
    result = {}
    for name, optimizer in OPTIMIZERS.items():
        losses: list[list[float]] = []
        for parallel in (False, True):
            torch.manual_seed(3)
            model = _PartlyParallel()
            if parallel:
                parallelize_module(model, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
            updates, values = optimizer(model.parameters()), []
            for step in range(3):
                x = torch.arange(32.0).reshape(4, 8).add(step).sin()
                loss = F.cross_entropy(model(x), torch.tensor([0, 1, 2, 0]))
                updates.zero_grad()
                loss.backward()
                updates.step()
                values.append(loss.item())
            losses.append(values)
        result[name] = losses
    return result
