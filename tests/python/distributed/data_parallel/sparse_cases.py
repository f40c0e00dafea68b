"""DistributedDataParallel of embeddings with sparse=True, beside the same training on one engine. Each function runs on all
ranks."""

from __future__ import annotations

import teletensor as torch
import teletensor.distributed as dist
from teletensor import nn
from teletensor.nn.parallel import DistributedDataParallel

STEPS = 3


class Model(nn.Module):
    """Two sparse embeddings, one of them of bags, and layers with strided gradients."""

    def __init__(self, sparse: bool = True, layers: bool = True):
        super().__init__()
        torch.manual_seed(1)
        self.words = nn.Embedding(20, 4, sparse=sparse)
        self.bags = nn.EmbeddingBag(10, 4, mode="sum", sparse=sparse)
        self.layers = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1)) if layers else nn.Identity()

    def forward(self, words: torch.Tensor, bags: torch.Tensor | None) -> torch.Tensor:
        x = self.words(words)
        return self.layers(x if bags is None else x + self.bags(bags))


def batch(step: int, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(100 * step + rank)
    return torch.randint(0, 20, (6,), generator=generator), torch.randint(0, 10, (6, 3), generator=generator)


def optimizers(module: nn.Module) -> list:
    sparse = [p for name, p in module.named_parameters() if "words" in name or "bags" in name]
    strided = [p for p in module.parameters() if all(p is not s for s in sparse)]
    made = [torch.optim.SparseAdam(sparse, lr=0.1)]
    return made + ([torch.optim.SGD(strided, lr=0.1)] if strided else [])


def train(module: nn.Module, losses, begin: int = 0, end: int = STEPS, made: list | None = None) -> list:
    made = made or optimizers(module)
    for step in range(begin, end):
        for optimizer in made:
            optimizer.zero_grad()
        losses(step)
        for optimizer in made:
            optimizer.step()
    return made


def difference(module: nn.Module, other: nn.Module) -> float:
    return max((p - q).abs().max().item() for p, q in zip(module.parameters(), other.parameters(), strict=True))


def alone(size: int, **options) -> nn.Module:
    module = Model(**options)

    def losses(step: int) -> None:
        for rank in range(size):
            (module(*batch(step, rank)).square().sum() / size).backward()

    train(module, losses)
    return module


def trains(rank: int, size: int, layers: bool = True, **options) -> list:
    inner = Model(layers=layers)
    with torch.no_grad():
        inner.words.weight.add_(rank)  # the constructor copies the values of rank 0
    module = DistributedDataParallel(inner, **options)
    train(module, lambda step: module(*batch(step, rank)).square().sum().backward())
    gradient = inner.words.weight.grad
    return [difference(inner, alone(size, layers=layers)), gradient.layout == torch.sparse_coo and gradient.is_coalesced()]


def gradients(rank: int, size: int, hook: str | None = None) -> float:
    """The largest error of the averaged gradients, relative to the largest element."""
    from teletensor.distributed.algorithms.ddp_comm_hooks import default_hooks

    module = DistributedDataParallel(Model())
    if hook is not None:
        module.register_comm_hook(None, getattr(default_hooks, hook))
    module(*batch(0, rank)).square().sum().backward()
    expected = Model(sparse=False)
    for r in range(size):
        (expected(*batch(0, r)).square().sum() / size).backward()
    pairs = zip(module.parameters(), expected.parameters(), strict=True)
    return max(((p.grad.to_dense() - q.grad).abs().max() / q.grad.abs().max()).item() for p, q in pairs)


def accumulates(rank: int, size: int) -> float:
    """Passes within no_sync(), and a pass that adds to gradients of an earlier one."""
    module, expected = DistributedDataParallel(Model()), Model(sparse=False)
    with module.no_sync():
        module(*batch(0, rank)).sum().backward()
    local = module.module.words.weight.grad.to_dense()
    own = Model(sparse=False)
    own(*batch(0, rank)).sum().backward()
    assert torch.allclose(local, own.words.weight.grad)
    for step in (1, 2):
        module(*batch(step, rank)).sum().backward()
    for step in range(3):
        for r in range(size):
            (expected(*batch(step, r)).sum() / size).backward()
    return max((p.grad.to_dense() - q.grad).abs().max().item()
               for p, q in zip(module.parameters(), expected.parameters(), strict=True))  # fmt: skip


def unused(rank: int, size: int, **options) -> list:
    """The bags are used by rank 0 only, then by no rank."""
    module = DistributedDataParallel(Model(), **options)
    words, bags = batch(0, 0)
    module(words, bags if rank == 0 else None).sum().backward()
    found = module.module.bags.weight.grad.to_dense()
    own = Model(sparse=False)
    own(words, bags).sum().backward()
    right = torch.allclose(found, own.bags.weight.grad / size)
    for p in module.parameters():
        p.grad = None
    module(words, None).sum().backward()
    return [right, module.module.bags.weight.grad is None, module.module.words.weight.grad is not None]


def _error_of(function) -> list:
    try:
        function()
    except Exception as error:  # noqa: BLE001 - returned
        return [type(error).__name__, str(error)]
    return []


def missing(rank: int, size: int) -> list:
    """A pass that does not use the bags, without find_unused_parameters."""
    module = DistributedDataParallel(Model())
    words, _ = batch(0, rank)
    return _error_of(lambda: module(words, None).sum().backward())


def tied(rank: int, size: int) -> list:
    """A weight that has a sparse and a strided gradient."""

    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(20, 4, sparse=True)

        def forward(self, words):
            return self.words(words) @ self.words.weight.t()

    module = DistributedDataParallel(Tied())
    return _error_of(lambda: module(torch.tensor([rank, 3])).sum().backward())


def hooks_in_python(rank: int, size: int, **options) -> list:
    """The parameters after a hook has averaged the gradients, and the kinds of buckets."""
    kinds = []

    def average(state, bucket):
        kinds.append([bucket.buffer().is_sparse, len(bucket.parameters()), len(bucket.gradients())])
        return dist.all_reduce(bucket.buffer().div_(size), async_op=True).get_future()

    module = DistributedDataParallel(Model(), **options)
    module.register_comm_hook(None, average)
    train(module, lambda step: module(*batch(step, rank)).square().sum().backward())
    return [difference(module.module, alone(size)), kinds[: len(kinds) // STEPS]]


def hook_with_unused_parameters(rank: int, size: int) -> list:
    def average(state, bucket):
        return dist.all_reduce(bucket.buffer().div_(size), async_op=True).get_future()

    module = DistributedDataParallel(Model(), find_unused_parameters=True)
    module.register_comm_hook(None, average)
    words, bags = batch(0, 0)
    module(words, bags if rank == 0 else None).sum().backward()
    own = Model(sparse=False)
    own(words, bags).sum().backward()
    right = torch.allclose(module.module.bags.weight.grad.to_dense(), own.bags.weight.grad / size)
    for p in module.parameters():
        p.grad = None
    module(words, None).sum().backward()
    return [right, module.module.bags.weight.grad is None]


def other_module(rank: int, size: int) -> bool:
    """A pass of another module, between forward and backward, does not start the average."""
    module, other = DistributedDataParallel(Model()), Model()
    output = module(*batch(0, rank))
    for _ in range(1 + rank):  # different numbers of passes
        other(*batch(1, rank)).sum().backward()
    output.sum().backward()
    total = module.module.words.weight.grad.to_dense()
    dist.broadcast(total, 0)
    return torch.equal(total, module.module.words.weight.grad.to_dense())


def joins(rank: int, size: int, layers: bool) -> float:
    """Ranks with different numbers of inputs."""
    module = DistributedDataParallel(Model(layers=layers))
    made = optimizers(module)
    with module.join():
        train(module, lambda step: module(*batch(step, rank)).square().sum().backward(), 0, 1 + rank, made)
    expected = Model(layers=layers)

    def losses(step: int) -> None:
        for r in range(size):
            if step < 1 + r:
                (expected(*batch(step, r)).square().sum() / size).backward()

    train(expected, losses, 0, size)
    return difference(module.module, expected)


def replicated(rank: int, size: int) -> float:
    """torch.distributed._composable.replicate."""
    from teletensor.distributed._composable.replicate import replicate

    module = replicate(Model())
    train(module, lambda step: module(*batch(step, rank)).square().sum().backward())
    return difference(module, alone(size))


def pickled(rank: int, size: int) -> float:
    import copy

    module = copy.deepcopy(DistributedDataParallel(Model()))
    train(module, lambda step: module(*batch(step, rank)).square().sum().backward())
    return difference(module.module, alone(size))
