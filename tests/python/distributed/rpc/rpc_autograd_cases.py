"""Distributed autograd and DistributedOptimizer. Each function runs on all workers; only worker 0 starts passes."""

from __future__ import annotations

import threading
import time

import teletensor as torch
import teletensor.distributed.autograd as dist_autograd
from teletensor import nn
from teletensor.distributed import rpc
from teletensor.distributed.optim import DistributedOptimizer

from . import rpc_cases
from .rpc_cases import raised


def run(rank: int, size: int, case: str, port: int, options: dict, settings: dict | None = None):
    """Runs a case on worker 0 between init_rpc() and shutdown() of all workers."""
    settings = rpc.TensorPipeRpcBackendOptions(init_method=f"tcp://127.0.0.1:{port}", **(settings or {}))
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=size, rpc_backend_options=settings)
    graceful = False
    try:
        result = globals()[case](size, **options) if rank == 0 else None
        graceful = True
        return result
    finally:
        rpc.shutdown(graceful=graceful)


def leaf(*sizes: int, seed: int) -> torch.Tensor:
    torch.manual_seed(seed)
    return torch.randn(*sizes, dtype=torch.float64).requires_grad_()


def check(actual, expected) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-12)


@rpc.register
def multiply(x, y):
    return x * y


@rpc.register
def split_up(x):
    return x * 2, x.sum(), 5, x.detach()


@rpc.register
def through(hops: list, x, y):
    """Multiplies here, and passes the product on to the other workers."""
    product = x * y
    return rpc.rpc_sync(hops[0], through, args=(hops[1:], product, y)) if hops else product


def one_call(size: int) -> None:
    for to in ("worker1", "worker0"):
        x, y = leaf(3, 4, seed=1), leaf(3, 4, seed=2)
        with dist_autograd.context() as context:
            result = rpc.rpc_sync(to, multiply, args=(x, y))
            assert result.requires_grad
            dist_autograd.backward(context, [(result.sin() + x).sum()])
            found = dist_autograd.get_gradients(context)
            assert len(found) == 2 and x in found and torch.ones(2) not in found
            assert {t._handle for t in found} == {x._handle, y._handle}
            expected = torch.autograd.grad(((x * y).sin() + x).sum(), [x, y])
            check([found[x], found[y]], list(expected))
        assert x.grad is None and y.grad is None
        assert raised(dist_autograd.get_gradients, context)[1].startswith("Could not find autograd context")


def graphs(size: int) -> None:
    """Messages in series, in parallel, shared and unused."""
    w1, w2 = "worker1", f"worker{size - 1}"
    x, y, z = (leaf(5, seed=i) for i in range(3))

    def remote_loss():
        a = rpc.rpc_sync(w1, multiply, args=(x, y))
        b = rpc.rpc_sync(w2, multiply, args=(a, a))  # one tensor twice in a message
        c = rpc.rpc_sync(w1, multiply, args=(b, a))  # a result of a result, and the first one again
        d = rpc.rpc_sync(w2, through, args=([w1, "worker0", w2], c, z))
        rpc.rpc_sync(w1, multiply, args=(d, d))  # takes no part
        doubled, total, five, constant = rpc.rpc_sync(w2, split_up, args=(d,))
        assert five == 5 and not constant.requires_grad
        e = rpc.remote(w1, multiply, args=(doubled, total)).to_here()
        return (e + rpc.rpc_sync(w1, torch.add, args=(x, constant))).tanh().sum()

    def local_loss():
        a = x * y
        b = a * a
        c = b * a
        d = c * z * z * z * z
        doubled, total, constant = d * 2, d.sum(), d.detach()
        return (doubled * total + (x + constant)).tanh().sum()

    expected = torch.autograd.grad(local_loss(), [x, y, z])
    for _ in range(3):
        with dist_autograd.context() as context:
            loss = remote_loss()
            check(loss.detach(), local_loss().detach())
            dist_autograd.backward(context, [loss])
            found = dist_autograd.get_gradients(context)
            check([found[t] for t in (x, y, z)], list(expected))


def several_passes(size: int) -> None:
    x, y = leaf(3, seed=1), leaf(3, seed=2)
    with dist_autograd.context() as context:
        result = rpc.rpc_sync("worker1", multiply, args=(x, y))
        first, second = result.sum(), result.square().sum()
        dist_autograd.backward(context, [first], retain_graph=True)
        check(dist_autograd.get_gradients(context)[x], y.detach())
        dist_autograd.backward(context, [first, second], retain_graph=True)  # two roots; gradients add up
        expected = (2 * y + 2 * x * y * y).detach()
        check(dist_autograd.get_gradients(context)[x], expected)
        dist_autograd.backward(context, [second])
        kind, message = raised(dist_autograd.backward, context, [second])
        assert kind == "RuntimeError" and "second time" in message, message


def errors(size: int) -> None:
    x = leaf(3, seed=1)
    assert "Could not find autograd context with id: 99" in raised(dist_autograd.backward, 99, [x.sum()])[1]
    with dist_autograd.context() as context:
        assert "No tensors provided" in raised(dist_autograd.backward, context, [])[1]
        assert "requires_grad not set on root" in raised(dist_autograd.backward, context, [torch.ones(())])[1]
        assert "root is not a scalar" in raised(dist_autograd.backward, context, [x * 2])[1]
        assert "Already have an autograd context" in raised(dist_autograd.context().__enter__)[1]
        with torch.no_grad():
            assert not rpc.rpc_sync("worker1", multiply, args=(x, x)).requires_grad
        kind, message = raised(rpc.rpc_sync, "worker1", rpc_cases.fail, args=("value", "no"))
        assert kind == "ValueError"
    assert not rpc.rpc_sync("worker1", multiply, args=(x, x)).requires_grad, "outside a context"
    with dist_autograd.context() as context:  # an error of the engine in a backward pass is that of the gradients
        result = rpc.rpc_sync("worker1", multiply, args=(x, x.detach().gather(0, torch.tensor([7]))))
        dist_autograd.backward(context, [result.sum()])
        found = dist_autograd.get_gradients(context)
        assert raised(found[x].tolist)[0] == "IndexError"


@rpc.register
def num_contexts() -> int:
    return len(dist_autograd._context._contexts)


def contexts_are_released(size: int) -> None:
    x = leaf(3, seed=1)
    with dist_autograd.context():
        rpc.rpc_sync("worker1", through, args=(["worker2"], x, x))
        assert [rpc.rpc_sync(i, num_contexts) for i in range(3)] == [1, 1, 1]
    for _ in range(200):
        if [rpc.rpc_sync(i, num_contexts) for i in range(3)] == [0, 0, 0]:
            break
        time.sleep(0.01)
    assert [rpc.rpc_sync(i, num_contexts) for i in range(3)] == [0, 0, 0]


def threads(size: int) -> None:
    """Contexts of several threads do not mix."""
    failures: list = []

    def work(seed: int) -> None:
        try:
            x = torch.full((4,), float(seed), dtype=torch.float64, requires_grad=True)
            for _ in range(3):
                with dist_autograd.context() as context:
                    y = rpc.rpc_sync("worker1", multiply, args=(x, x))
                    dist_autograd.backward(context, [y.sum()])
                    check(dist_autograd.get_gradients(context)[x], (2 * x).detach())
        except Exception as error:  # noqa: BLE001
            failures.append(repr(error))

    running = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert failures == []


@rpc.register
class Part(nn.Module):
    """A part of a model, whose parameters do not depend on the worker that has it."""

    def __init__(self, inputs: int, outputs: int, seed: int):
        super().__init__()
        torch.manual_seed(seed)
        self.linear = nn.Linear(inputs, outputs).to(torch.float64)

    def forward(self, x):
        return self.linear(x).tanh()

    def references(self) -> list:
        return [rpc.RRef(parameter) for parameter in self.parameters()]

    def values(self) -> list:
        return [parameter.detach() for parameter in self.parameters()]

    def gradients(self, context: int) -> list:
        found = dist_autograd.get_gradients(context)
        return [found[parameter] for parameter in self.parameters()]


SIZES = ((4, 8), (8, 8), (8, 2))


def batches():
    torch.manual_seed(0)
    return [(torch.randn(6, 4, dtype=torch.float64), torch.randn(6, 2, dtype=torch.float64)) for _ in range(5)]


def train_here(optimizer_class, options: dict) -> tuple[list, list]:
    """Returns the losses and the parameters of a training on one engine."""
    model = nn.Sequential(*[Part(*sizes, seed=i) for i, sizes in enumerate(SIZES)])
    optimizer = optimizer_class(model.parameters(), **options)
    losses = []
    for x, y in batches():
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [p.detach() for p in model.parameters()]


def training(size: int) -> None:
    """A model of three parts on three workers, of which one is this one, gives one engine's losses."""
    for name, options in (("SGD", {"lr": 0.1, "momentum": 0.9}), ("AdamW", {"lr": 0.01})):
        optimizer_class = getattr(torch.optim, name)
        losses, expected = train_here(optimizer_class, options)
        parts = [rpc.remote(f"worker{(i + 1) % size}", Part, args=(*sizes, i)) for i, sizes in enumerate(SIZES)]
        parameters = [p for part in parts for p in part.rpc_sync().references()]
        optimizer = DistributedOptimizer(optimizer_class, parameters, **options)
        found = []
        for x, y in batches():
            with dist_autograd.context() as context:
                for part in parts:
                    x = part.rpc_sync().forward(x)
                loss = (x - y).square().mean()
                dist_autograd.backward(context, [loss])
                assert len(parts[0].rpc_sync().gradients(context)) == 2
                optimizer.step(context)
                found.append(loss.item())
        check(torch.tensor(found, dtype=torch.float64), torch.tensor(losses, dtype=torch.float64))
        check([value for part in parts for value in part.rpc_sync().values()], expected)
    assert raised(DistributedOptimizer, torch.optim.SGD, parameters, lr=-1.0)[0] == "ValueError"
    assert raised(DistributedOptimizer, multiply, parameters)[0] == "TypeError"
    assert "Could not find autograd context" in raised(optimizer.step, 99)[1]


def rref_backward(size: int) -> None:
    x, y = leaf(3, seed=1), leaf(3, seed=2)
    with dist_autograd.context() as context:
        product = rpc.remote("worker1", multiply, args=(x, y))
        loss = rpc.remote("worker1", torch.sum, args=(product.to_here(),))
        loss.backward(context)
        check(dist_autograd.get_gradients(context)[x], y.detach())
    local = rpc.RRef((x * y).sum())
    local.backward()
    check(x.grad, y.detach())


def remote_module(size: int) -> None:
    """A module on another worker trains as a local one, and can be sent."""
    from teletensor.distributed.nn import RemoteModule

    remote = RemoteModule("worker1/cpu", torch.nn.Linear, args=(3, 2), kwargs={"bias": False})
    (weight,) = remote.remote_parameters()
    x, before = torch.arange(6.0).reshape(2, 3), weight.to_here()
    assert (remote(x) - x @ before.T).abs().max() < 1e-6 and remote.forward_async(x).wait().shape == (2, 2)
    optimizer = DistributedOptimizer(torch.optim.SGD, [weight], lr=0.1)
    with dist_autograd.context() as context:
        dist_autograd.backward(context, [remote(x).sum()])
        optimizer.step(context)
    assert (weight.to_here() - (before - 0.1 * x.sum(0))).abs().max() < 1e-5
    again = RemoteModule.init_from_module_rref("rank:1", remote.get_module_rref())
    assert again.eval() is again and (again(x) - remote(x)).abs().max() == 0
    assert rpc.rpc_sync("worker1", worker_of, args=(remote,)) == "worker1"
    for call, kind in ((remote.parameters, ValueError), (lambda: RemoteModule("/", torch.nn.Linear), ValueError)):
        try:
            call()
        except kind:
            continue
        raise AssertionError(call)


@rpc.register
def worker_of(module) -> str:
    return module.on
