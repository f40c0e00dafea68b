"""DistributedDataParallel of embeddings with sparse=True, beside the same training on one engine. Each function runs on all
ranks."""

from __future__ import annotations

import contextlib

import teletensor as torch
import teletensor.distributed as dist
from teletensor import nn
from teletensor.nn.parallel import DistributedDataParallel
from tests.python.distributed.collectives.sparse_cases import error_of

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


def average(state, bucket):
    """A communication hook."""
    return dist.all_reduce(bucket.buffer().div_(dist.get_world_size()), async_op=True).get_future()


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


def missing(rank: int, size: int) -> list:
    """A pass that does not use the bags, without find_unused_parameters."""
    module = DistributedDataParallel(Model())
    words, _ = batch(0, rank)
    return error_of(lambda: module(words, None).sum().backward())


def _averages(module: nn.Module, expected: nn.Module, size: int, loss) -> float:
    """The largest error of a module's gradients, beside the average of the losses of all ranks on one engine."""
    for r in range(size):
        (loss(expected, r) / size).backward()
    pairs = list(zip(module.parameters(), expected.parameters(), strict=True))
    assert all((p.grad is None) == (q.grad is None) for p, q in pairs)
    return max((p.grad.to_dense() - q.grad).abs().max().item() for p, q in pairs if q.grad is not None)


class Tied(nn.Module):
    """A weight that has a sparse and a strided gradient. The module that is registered first may have either."""

    def __init__(self, sparse: bool, embedding_first: bool):
        super().__init__()
        torch.manual_seed(1)
        words, layer = nn.Embedding(20, 4, sparse=sparse), nn.Linear(4, 20, bias=False)
        layer.weight = words.weight
        for name in ("words", "layer") if embedding_first else ("layer", "words"):
            setattr(self, name, locals()[name])

    def forward(self, words: torch.Tensor, uses_layer: bool = True) -> torch.Tensor:
        return self.layer(self.words(words)) if uses_layer else self.words(words)


def tied(rank: int, size: int, embedding_first: bool, only_rank: int | None = None, hook: bool = False, **options) -> list:
    """Two passes. With `only_rank`, only this rank has a strided gradient."""

    def loss(module: nn.Module, r: int) -> torch.Tensor:
        return module(batch(0, r)[0], only_rank in (None, r)).square().sum()

    module, expected = DistributedDataParallel(Tied(True, embedding_first), **options), Tied(False, embedding_first)
    if hook:
        module.register_comm_hook(None, average)
    errors = []
    for _ in range(2):
        loss(module, rank).backward()
        errors.append(_averages(module.module, expected, size, loss))
    return errors


def functional(rank: int, size: int, also_strided: bool) -> list:
    """A sparse gradient of a weight that is not that of an embedding: an error, or the gradient's error after a hook in Python."""

    class Functional(nn.Module):
        def __init__(self, sparse: bool = True):
            super().__init__()
            torch.manual_seed(1)
            self.table = nn.Parameter(torch.ones(20, 4))
            self.layer = nn.Linear(4, 4)
            self.sparse = sparse

        def forward(self, words):
            x = self.layer(nn.functional.embedding(words, self.table, sparse=self.sparse))
            return x @ self.table.t() if also_strided else x

    def loss(module: nn.Module, r: int) -> torch.Tensor:
        return module(batch(0, r)[0]).square().sum()

    hooked = DistributedDataParallel(Functional())
    hooked.register_comm_hook(None, average)
    loss(hooked, rank).backward()
    error = _averages(hooked.module, Functional(False), size, loss)
    module = DistributedDataParallel(Functional())
    return [error, *error_of(lambda: loss(module, rank).backward())]


class Holder:
    """A result in which tensors are not found."""

    def __init__(self, x: torch.Tensor):
        self.x = x


class Selective(nn.Module):
    """An embedding and a layer, of which a call may use only one."""

    def __init__(self, sparse: bool = True, hides: bool = False):
        super().__init__()
        torch.manual_seed(1)
        self.words, self.layer, self._hides = nn.Embedding(20, 4, sparse=sparse), nn.Linear(4, 4), hides

    def forward(self, words: torch.Tensor, embeds: bool = True, uses_layer: bool = True):
        x = self.words(words) if embeds else torch.ones(len(words), 4)
        x = self.layer(x) if uses_layer else x
        return Holder(x) if self._hides else x


def selective(rank: int, size: int, missing: str, hides: bool, hook: bool = False, **options) -> float:
    """Only rank 0 uses the embedding, or the layer, then no rank, then rank 0 again."""

    module = DistributedDataParallel(Selective(hides=hides), **options)
    if hook:
        module.register_comm_hook(None, average)
    errors = []
    for step, user in enumerate((0, None, 0)):
        module.zero_grad()

        def loss(module: nn.Module, r: int) -> torch.Tensor:
            x = module(batch(step, r)[0], **{missing: r == user})  # noqa: B023 - called in this iteration
            return (x.x if isinstance(x, Holder) else x).square().sum()

        loss(module, rank).backward()
        errors.append(_averages(module.module, Selective(sparse=False, hides=hides), size, loss))
    return max(errors)


class Branches(nn.Module):
    """Embeddings and layers, of which a call uses some."""

    def __init__(self, sparse: bool = True):
        super().__init__()
        torch.manual_seed(1)
        self.tables = nn.ModuleList(nn.Embedding(20, 4, sparse=sparse) for _ in range(3))
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.head = nn.Linear(4, 20, bias=False)
        self.head.weight = self.tables[0].weight  # a strided gradient, on the ranks that use it

    def forward(self, words: torch.Tensor, uses: list[bool]) -> torch.Tensor:
        x = torch.ones(len(words), 4) + 0 * torch.ones(1, requires_grad=True)
        for use, table in zip(uses[:3], self.tables, strict=True):
            x = x + table(words) if use else x
        for use, layer in zip(uses[3:6], self.layers, strict=True):
            x = layer(x) if use else x
        return self.head(x) if uses[6] else x


def random_uses(rank: int, size: int, hook: bool = False, **options) -> float:
    """Passes in which each rank uses other parameters, or none. Each parameter has a bucket of its own."""
    generator = torch.Generator().manual_seed(7)
    module = DistributedDataParallel(Branches(), bucket_cap_mb=1e-5, **options)
    if hook:
        module.register_comm_hook(None, average)
    expected, errors = Branches(sparse=False), []
    for step in range(24):
        uses = (torch.rand(size, 7, generator=generator) < 0.4).tolist()
        if step % 3:  # otherwise the gradients accumulate
            module.zero_grad()
            expected.zero_grad()

        def loss(module: nn.Module, r: int) -> torch.Tensor:
            return module(batch(step, r)[0], uses[r]).sum()  # noqa: B023 - called in this iteration

        loss(module, rank).backward()
        errors.append(_averages(module.module, expected, size, loss))
    return max(errors)


def no_strided_gradient(rank: int, size: int) -> list:
    """A pass in which one rank does not use the layer, without find_unused_parameters."""
    module = DistributedDataParallel(Selective())
    return error_of(lambda: module(batch(0, rank)[0], uses_layer=rank == 0).sum().backward())


def outputs(rank: int, size: int, kind: str, hook: bool = False) -> float:
    """The gradients of losses of outputs of several kinds."""

    class Outputs(Selective):
        def forward(self, words):
            x = super().forward(words)
            if kind == "sparse":
                return x.to_sparse()
            if kind == "nested":
                return torch.nested.nested_tensor_from_jagged(x, torch.tensor([0, 1, len(words)]))
            if kind == "parameter":
                return {"x": x, "bias": self.layer.bias}
            return {"list": [x, x * 2], "views": (x[0], x[1])}.get(kind, x)

    def loss(module: nn.Module, r: int) -> torch.Tensor:
        x = module(batch(0, r)[0])
        if kind == "add_":
            x.add_(1)
        elif kind == "relu_":
            x = nn.functional.relu(x, inplace=True)
        elif kind == "sparse":
            x = x.to_dense()
        elif kind == "nested":
            x = x.values()
        elif kind == "parameter":
            x = x["x"] * x["bias"]
        elif kind in ("list", "views"):
            x = x[0] + x[1]
        return x.square().sum()

    module = DistributedDataParallel(Outputs())
    if hook:
        module.register_comm_hook(None, average)
    loss(module, rank).backward()
    return _averages(module.module, Outputs(sparse=False), size, loss)


def penalized(rank: int, size: int) -> float:
    """A gradient of a gradient."""

    class Product(nn.Module):
        def __init__(self, sparse: bool):
            super().__init__()
            torch.manual_seed(1)
            self.words, self.layer = nn.Embedding(20, 4, sparse=sparse), nn.Linear(4, 4)

        def forward(self, words, x):
            return (self.words(words) * self.layer(x) ** 2).sum()

    def loss(module: nn.Module, r: int) -> torch.Tensor:
        x = torch.ones(1, 4, requires_grad=True)
        y = module(batch(0, r)[0], x)
        (gradient,) = torch.autograd.grad(y, [x], create_graph=True)
        return gradient.square().sum() + y

    module = DistributedDataParallel(Product(True))
    loss(module, rank).backward()
    return _averages(module.module, Product(False), size, loss)


def forward_between(rank: int, size: int, layout: str, between: str, hook: bool = False) -> float:
    """Another forward pass between forward and backward, after a first iteration."""

    def loss(module: nn.Module, r: int) -> torch.Tensor:
        x = module(batch(0, r)[0])
        with module.no_sync() if between == "no_sync" and module is parallel else contextlib.nullcontext():
            if between == "no_grad":
                with torch.no_grad():
                    module(batch(1, r)[0])
            else:
                x = x + module(batch(1, r)[0])
        return x.square().sum()

    parallel = DistributedDataParallel(Selective(layout == "sparse"))
    if hook:
        parallel.register_comm_hook(None, average)
    parallel(batch(0, rank)[0]).sum().backward()
    parallel.zero_grad()
    loss(parallel, rank).backward()
    error = _averages(parallel.module, Selective(False), size, loss)
    with parallel.no_sync():
        parallel.zero_grad()
        parallel(batch(0, rank)[0]).sum().backward()
    expected = Selective(False)
    expected(batch(0, rank)[0]).sum().backward()  # a pass within no_sync() stays local afterwards
    pairs = zip(parallel.parameters(), expected.parameters(), strict=True)
    return max(error, *((p.grad.to_dense() - q.grad).abs().max().item() for p, q in pairs))


def checkpointed(rank: int, size: int, use_reentrant: bool, hook: bool = False) -> float:
    """The module's forward pass is computed again during backward, in two iterations."""
    from teletensor.utils.checkpoint import checkpoint

    class Scaled(Selective):
        def forward(self, words, scale):
            return super().forward(words) * scale

    def loss(module: nn.Module, r: int) -> torch.Tensor:
        scale = torch.ones(1, requires_grad=True)
        return checkpoint(module, batch(0, r)[0], scale, use_reentrant=use_reentrant).square().sum()

    module, errors = DistributedDataParallel(Scaled()), []
    if hook:
        module.register_comm_hook(None, average)
    for _ in range(2):
        module.zero_grad()
        loss(module, rank).backward()
        errors.append(_averages(module.module, Scaled(sparse=False), size, loss))
    return max(errors)


class _Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        raise ValueError("fails")


def foreign_passes(rank: int, size: int, hook: bool = False) -> float:
    """Passes that reach the output but accumulate nothing, and a pass of another module after each; then that of the module."""

    def loss(module: nn.Module, r: int) -> torch.Tensor:
        return module(batch(0, r)[0]).square().sum()

    def pass_of_another_module() -> None:
        nn.Linear(2, 1)(torch.ones(1, 2)).sum().backward()

    module = DistributedDataParallel(Selective())
    if hook:
        module.register_comm_hook(None, average)
    x = torch.ones(1, requires_grad=True)
    found = loss(module, rank) * x
    torch.autograd.grad(found, [module.module.layer.bias], retain_graph=True)
    pass_of_another_module()
    found.backward(inputs=[x], retain_graph=True)
    pass_of_another_module()
    output = module(batch(0, rank)[0])
    assert error_of(lambda: _Fails.apply(output + 0 * output.sum()).sum().backward())[1:] == ["fails"]
    pass_of_another_module()
    assert all(p.grad is None for p in module.parameters())
    loss(module, rank).backward()
    return _averages(module.module, Selective(sparse=False), size, loss)


def two_modules(rank: int, size: int, **options) -> float:
    """One pass of two modules, of which one rank uses no strided parameter of the first."""

    def loss(first: nn.Module, second: nn.Module, r: int) -> torch.Tensor:
        return first(batch(0, r)[0], uses_layer=r == 0).square().sum() + second(batch(1, r)[0]).square().sum()

    first, second = (DistributedDataParallel(Selective(), **options) for _ in range(2))
    expected = nn.ModuleList([Selective(sparse=False), Selective(sparse=False)])
    loss(first, second, rank).backward()
    return _averages(nn.ModuleList([first.module, second.module]), expected, size, lambda both, r: loss(*both, r))


def default_hook_called_by_a_hook(rank: int, size: int, name: str) -> float:
    from teletensor.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

    module = DistributedDataParallel(Model())
    if name == "powerSGD_hook":
        module.register_comm_hook(powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=10), powerSGD_hook.powerSGD_hook)
    else:
        module.register_comm_hook(None, lambda state, bucket: getattr(default_hooks, name)(state, bucket))
    module(*batch(0, rank)).square().sum().backward()
    return _averages(module.module, Model(sparse=False), size, lambda m, r: m(*batch(0, r)).square().sum())


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


def compresses(rank: int, size: int, name: str) -> list:
    """Training with PowerSGD, from its second step: the largest difference of the sparse gradients from their averages, and of the
    parameters between the ranks."""
    from teletensor.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

    module = DistributedDataParallel(Model())
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=2, min_compression_rate=0.1)
    module.register_comm_hook(state, getattr(powerSGD_hook, name))
    errors = []
    for step in range(4):
        module.zero_grad()
        module(*batch(step, rank)).square().sum().backward()
        own = Model(sparse=False)
        own.load_state_dict(module.module.state_dict())
        for r in range(size):
            (own(*batch(step, r)).square().sum() / size).backward()
        errors += [
            (a.grad.to_dense() - b.grad).abs().max().item()
            for a, b in zip(module.module.parameters(), own.parameters(), strict=True)
            if a.grad.is_sparse
        ]
        with torch.no_grad():
            for p in module.parameters():
                p -= 0.01 * (p.grad.to_dense() if p.grad.is_sparse else p.grad)
    assert state.iter == 4 and len(errors) >= 4
    flat = torch.cat([p.detach().reshape(-1) for p in module.parameters()])
    average = flat.clone()
    dist.all_reduce(average)
    return [max(errors), (average / size - flat).abs().max().item()]
