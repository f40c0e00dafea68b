"""Compiled training steps: forward, backward and the optimizer's step are one Program, with the bits of single calls."""

from __future__ import annotations

import copy

import pytest

import teletensor as torch
import teletensor.nn as nn
import teletensor.nn.functional as F
from teletensor._dynamo.utils import counters

OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=0.1),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01, maximize=True),
    "groups": lambda p: torch.optim.AdamW([{"params": p[:1], "lr": 0.1}, {"params": p[1:], "weight_decay": 0}]),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.9),
    "NAdam": lambda p: torch.optim.NAdam(p, lr=0.01, weight_decay=0.1),
}


@pytest.fixture(autouse=True)
def _exact(monkeypatch):
    monkeypatch.setenv("TELETENSOR_EXACT_PROGRAMS", "1")
    torch._dynamo.reset()


def make():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.LayerNorm(32), nn.Dropout(0.1), nn.Linear(32, 4))


def batches(count, sizes=(16,)):
    generator = torch.Generator().manual_seed(1)
    return [
        (torch.randn(n, 8, generator=generator), torch.randint(0, 4, (n,), generator=generator))
        for n in (sizes[i % len(sizes)] for i in range(count))
    ]


def plain_step(model, optimizer):
    def step(x, target):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def clipped_step(model, optimizer):
    def step(x, target):
        model.zero_grad()
        loss = F.cross_entropy(model(x), target)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        return loss.detach(), norm

    return step


def accumulating_step(model, optimizer):
    def step(x, target):
        for part, t in zip(x.chunk(2), target.chunk(2)):
            (F.cross_entropy(model(part), t) / 2).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return len(x)

    return step


def reading_step(model, optimizer):
    def step(x, target):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), target)
        loss.backward()
        total = sum(p.grad.abs().sum() for p in model.parameters() if p.grad is not None)
        for p in model.parameters():
            p.grad = p.grad * 0.5
        optimizer.step()
        return loss.detach(), total

    return step


def zeroing_step(model, optimizer):
    def step(x, target):
        optimizer.zero_grad(set_to_none=False)
        loss = F.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def with_forward_only(model, optimizer):
    def step(x, target):
        loss = F.cross_entropy(model(x), target)
        loss.backward()
        return loss.detach()

    return step


def train(step, data, between=None):
    torch.manual_seed(2)
    results = []
    for i, (x, target) in enumerate(data):
        results.append(step(x, target))
        if between is not None:
            between(i)
    return results


def compare(make_step, make_optimizer, data, between=None):
    models = make(), make()
    optimizers = [make_optimizer(list(m.parameters())) for m in models]
    steps = [make_step(m, o) for m, o in zip(models, optimizers)]
    got = train(torch.compile(steps[0]), data, between and (lambda i: between(i, models[0], optimizers[0])))
    want = train(steps[1], data, between and (lambda i: between(i, models[1], optimizers[1])))
    torch.testing.assert_close(got, want, rtol=0, atol=0)
    for p, q in zip(models[0].parameters(), models[1].parameters()):
        assert torch.equal(p, q) and (p.grad is None) == (q.grad is None)
        assert p.grad is None or torch.equal(p.grad, q.grad)
    states = [o.state_dict()["state"] for o in optimizers]
    torch.testing.assert_close(states[0], states[1], rtol=0, atol=0)
    assert not counters["internal"]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_one_program(name):
    compare(plain_step, OPTIMIZERS[name], batches(4))
    assert counters["engine"] == {"programs": 1} and not counters["graph_break"] and not counters["recompiles"]


@pytest.mark.parametrize(("make_step", "programs"), [
    (clipped_step, 1), (accumulating_step, 1), (reading_step, 1), (with_forward_only, 1), (zeroing_step, 2),
])  # fmt: skip
def test_other_steps(make_step, programs):
    compare(make_step, OPTIMIZERS["Adam"], batches(4))
    assert not counters["graph_break"] and counters["engine"]["programs"] == programs, counters


def test_batches_of_several_sizes():
    compare(plain_step, OPTIMIZERS["SGD"], batches(8, (16, 8, 5, 12)))
    assert counters["engine"] == {"programs": 2}


def test_learning_rates_change():
    def halve(_i, _model, optimizer):
        for group in optimizer.param_groups:
            group["lr"] /= 2

    compare(plain_step, OPTIMIZERS["Adam"], batches(4), halve)
    assert counters["engine"] == {"programs": 1}


def test_state_is_loaded_and_single_steps_alternate():
    def load(i, model, optimizer):
        if i == 1:
            optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        if i == 2:
            plain_step(model, optimizer)(*batches(1)[0])

    compare(plain_step, OPTIMIZERS["Adam"], batches(5), load)


def test_parameters_are_frozen_and_replaced():
    def change(i, model, _optimizer):
        if i == 1:
            model[0].weight.requires_grad_(False)
        if i == 3:
            model[4].weight.data = model[4].weight.data * 2

    compare(plain_step, OPTIMIZERS["SGD"], batches(6), change)


def test_hooks_and_other_optimizers_end_the_graph():
    compare(plain_step, lambda p: torch.optim.Adafactor(p, lr=0.01), batches(3))
    assert counters["graph_break"] and counters["engine"]["programs"] >= 1

    calls = []

    def with_hooks(parameters):
        optimizer = OPTIMIZERS["SGD"](parameters)
        optimizer.register_step_post_hook(lambda *args: calls.append(1))
        return optimizer

    compare(plain_step, with_hooks, batches(3))
    assert len(calls) == 6


def test_hooks_of_parameters_are_called():
    calls = []

    def hook(i, model, _optimizer):
        if i == 0:
            model[0].weight.register_hook(lambda g: calls.append(1))

    compare(plain_step, OPTIMIZERS["SGD"], batches(3), hook)
    assert len(calls) == 4


def test_a_break_after_backward():
    def make_step(model, optimizer):
        def step(x, target):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), target)
            loss.backward()
            value = loss.item()
            optimizer.step()
            return value

        return step

    compare(make_step, OPTIMIZERS["Adam"], batches(3))
    assert counters["engine"]["programs"] == 2


def test_backends_without_steps_have_breaks():
    graphs = []

    def backend(module, inputs):
        graphs.append(module)
        return module.forward

    model = make()
    step = torch.compile(plain_step(model, OPTIMIZERS["SGD"](model.parameters())), backend=backend)
    step(*batches(1)[0])
    assert counters["graph_break"] and all(n.target != "backward" for g in graphs for n in g.graph.nodes)


def test_gradients_of_arguments():
    def function(x, y):
        (x * y).sum().backward()
        return x.grad + 1

    def run(f):
        x, y = torch.ones(3, requires_grad=True), torch.arange(3.0)
        results = [f(x, y)]
        x.grad = None
        results.append(f(x, y))
        return [*results, x.grad]

    torch.testing.assert_close(run(torch.compile(function)), run(function))


def test_a_tensor_with_a_history():
    def function(x):
        (x * 2).sum().backward()

    def run(f):
        leaf = torch.ones(3, requires_grad=True)
        f(leaf * 3)
        return leaf.grad

    assert torch.equal(run(torch.compile(function)), run(function))


def checkpointed_step(model, optimizer):
    body = model[:3]

    def step(x, target):
        optimizer.zero_grad()
        hidden = torch.utils.checkpoint.checkpoint(body, x, use_reentrant=False)
        loss = F.cross_entropy(model[4](hidden), target)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def test_checkpoints_in_steps():
    compare(checkpointed_step, OPTIMIZERS["SGD"], batches(3))
    assert counters["engine"] == {"programs": 1} and not counters["graph_break"]


def test_checkpoints_without_backward_are_part_of_the_graph():
    body = make()[:3]

    def forward(x):
        return torch.utils.checkpoint.checkpoint(body, x, use_reentrant=False) * 2

    x = batches(1)[0][0]
    assert torch.equal(torch.compile(forward)(x), forward(x))
    assert not counters["graph_break"] and counters["engine"] == {"one by one": 1}


def test_autograd_grad():
    weight = torch.randn(4, 3, requires_grad=True)

    def function(x):
        loss = (x @ weight).tanh().sum()
        (g,) = torch.autograd.grad(loss, [weight])
        return loss.detach(), g * 2

    compiled = torch.compile(function)
    for n in (2, 3, 5):
        x = torch.randn(n, 4)
        torch.testing.assert_close(compiled(x), function(x), rtol=0, atol=0)
    assert not counters["graph_break"] and counters["engine"] == {"programs": 2}


@pytest.mark.parametrize("cls", [
    torch.optim.Adamax, torch.optim.NAdam, torch.optim.RAdam, torch.optim.Adagrad, torch.optim.Adadelta, torch.optim.RMSprop,
    torch.optim.ASGD, torch.optim.Rprop, torch.optim.Adam, torch.optim.SGD,
])  # fmt: skip
def test_gradients_that_accumulate(cls):
    """The second call finds gradients that the first did not: its Program refuses them, before or after a count of the step."""

    def losses(compiled):
        torch.manual_seed(0)
        layer = nn.Linear(4, 3)
        optimizer = cls(layer.parameters(), 0.1)

        def step(x):
            loss = layer(x).square().sum()
            loss.backward()
            optimizer.step()
            return loss.detach()

        call, found = torch.compile(step) if compiled else step, []
        for i in range(8):
            if i == 5:
                optimizer.param_groups[0]["maximize"] = True  # is part of the Program, which is refused before it counts
            found.append(call(torch.ones(2, 4)).item())
        return found, optimizer.state[layer.bias].get("step", 0)

    assert losses(True) == losses(False)


@pytest.mark.parametrize("register", [
    lambda optimizer, hook: optimizer.register_step_post_hook(hook), lambda optimizer, hook: optimizer.register_step_pre_hook(hook),
    lambda optimizer, hook: torch.optim.optimizer.register_optimizer_step_post_hook(hook),
], ids=["post", "pre", "global"])  # fmt: skip
def test_hooks_of_a_compiled_step_come_and_go(register):
    layer = nn.Linear(4, 3)
    optimizer, calls = torch.optim.SGD(layer.parameters(), 0.01), []

    @torch.compile
    def step(x):
        optimizer.zero_grad()
        layer(x).square().mean().backward()
        optimizer.step()

    for i in range(8):
        if i == 2:
            handle = register(optimizer, lambda *args: calls.append(i))  # noqa: B023
        if i == 6:
            handle.remove()
        step(torch.ones(5, 4))
    assert calls == [2, 3, 4, 5]
