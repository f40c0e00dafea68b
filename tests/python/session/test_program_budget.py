"""torch._functorch.config.activation_memory_budget: Programs with less memory for backward, and the same bits."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

import teletensor as torch
import teletensor.nn as nn
import teletensor.nn.functional as F
from teletensor import _C, _connection
from tests.conftest import IN_PROCESS

config = torch._functorch.config
trace = torch.compiler.trace


def same(got, want):
    assert torch.equal(got, want), (got - want).abs().max()


class Block(nn.Module):
    """A layer whose activation and norm are written out."""

    def __init__(self, size, dropout=0.0):
        super().__init__()
        self.up, self.down, self.dropout = nn.Linear(size, 4 * size), nn.Linear(4 * size, size), dropout

    def forward(self, x):
        y = x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5)
        h = self.up(y)
        h = h * torch.sigmoid(1.702 * h)
        return x + F.dropout(self.down(h), self.dropout, self.training)


def model_of(size=32, depth=4, **options):
    torch.manual_seed(0)
    return nn.Sequential(*(Block(size, **options) for _ in range(depth)))


def traced_step(model, budget, x):
    def step(x):
        model.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        return loss.detach()

    with config.patch(activation_memory_budget=budget):
        return trace(step, x)


def kept(program, x):
    """(calls computed again, bytes kept, bytes of all) and the peak after the last pass.

    Later passes must not compute forward and what is repeated together, which would keep it.
    """
    text = program.explain(x)
    found = re.search(r"recompute has added (\d+) calls, backward keeps (\d+) of (\d+) bytes", text)
    peaks = {name: int(peak) for name, peak in re.findall(r"# after (\w+).*values of at most (\d+) bytes", text)}
    peak = list(peaks.values())[-1]
    assert peak <= peaks["expand"]
    return (*map(int, found.groups()), peak) if found else (0, 0, 0, peak)


def gradients(model, program, x):
    torch.manual_seed(1)
    loss = program(x)
    return [loss, *(p.grad.clone() for p in model.parameters())]


def test_budgets_keep_less_and_the_bits_stay():
    model, x = model_of(), torch.randn(64, 32)
    whole = traced_step(model, 1.0, x)
    want, results, programs = gradients(model, whole, x), {}, []
    assert kept(whole, x)[:3] == (0, 0, 0)
    for budget in (0.8, 0.5, 0.2, 0.0):
        program = traced_step(model, budget, x)
        for got, expected in zip(gradients(model, program, x), want):
            same(got, expected)
        results[budget] = kept(program, x)
        programs.append(program)  # so that stats() has it
        calls, bytes_kept, every, _ = results[budget]
        assert calls > 0 and bytes_kept <= budget * every
    calls = [results[budget][0] for budget in (0.8, 0.5, 0.2, 0.0)]
    assert calls == sorted(calls) and calls[0] < calls[-1]
    for budget in (0.5, 0.2, 0.0):
        assert results[budget][3] < kept(whole, x)[3], "a lower peak"
    peaks = {s.peak_bytes for s in torch.compiler.stats()}
    assert results[0.5][3] in peaks, "stats() reports the peak, too"


def test_products_are_kept_before_pointwise_values():
    model, x = model_of(depth=2), torch.randn(64, 32)
    text = traced_step(model, 0.6, x).explain(x)
    expanded = text.split("# after expand")[1].split("# after")[0]
    whole = traced_step(model, 1.0, x).explain(x).split("# after expand")[1].split("# after")[0]
    for product in ("linear", "matmul"):
        assert expanded.count(f" {product}(") == whole.count(f" {product}(")
    assert expanded.count("sigmoid(") > whole.count("sigmoid(")


def test_dropout_is_drawn_once():
    model, x = model_of(dropout=0.5), torch.randn(16, 32)
    want = gradients(model, traced_step(model, 1.0, x), x)
    for got, expected in zip(gradients(model, traced_step(model, 0.0, x), x), want):
        same(got, expected)


def test_running_statistics_are_counted_once():
    """Norms write their statistics in forward: what reads them is not computed again, the rest is."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.SiLU(), nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8), nn.SiLU()
    )
    state = {k: v.clone() for k, v in model.state_dict().items()}
    x, results = torch.randn(4, 3, 16, 16), []
    for budget in (1.0, 0.5, 0.0):
        model.load_state_dict(state)
        program = traced_step(model, budget, x)
        values = gradients(model, program, x) + [v.clone() for v in model.state_dict().values()]
        results.append(values)
        if budget == 0.0:
            assert kept(program, x)[0] > 0
    for values in results[1:]:
        for got, expected in zip(values, results[0]):
            same(got, expected)


def test_with_checkpointed_regions_and_an_optimizer():
    from teletensor.utils.checkpoint import checkpoint

    model, x = model_of(), torch.randn(16, 32)
    state = {k: v.clone() for k, v in model.state_dict().items()}

    def train(budget):
        model.load_state_dict(state)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

        def step(x):
            optimizer.zero_grad()
            for i, block in enumerate(model):
                x = checkpoint(block, x, use_reentrant=False) if i == 1 else block(x)
            loss = x.square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        with config.patch(activation_memory_budget=budget):
            program = trace(step, x)
        losses = [program(x) for _ in range(3)]
        return [*losses, *(p.detach().clone() for p in model.parameters())]

    want = train(1.0)
    for got, expected in zip(train(0.3), want):
        same(got, expected)


def test_the_setting():
    assert config.activation_memory_budget == 1.0
    with pytest.raises(ValueError, match="from 0 to 1, got 1.5"):
        config.activation_memory_budget = 1.5
    with pytest.raises(ValueError, match="from 0 to 1, got nan"):
        config.activation_memory_budget = float("nan")
    with pytest.raises(TypeError, match="got str"):
        config.activation_memory_budget = "a"
    with config.patch("activation_memory_budget", 0.25):
        assert config.activation_memory_budget == 0.25
        with config.patch({"activation_memory_budget": 0}):
            assert config.activation_memory_budget == 0
    assert config.activation_memory_budget == 1.0
    with pytest.raises(AttributeError), config.patch(nothing=1):
        pass
    with torch._dynamo.config.patch(recompile_limit=3):
        assert torch._dynamo.config.recompile_limit == 3
    assert torch._dynamo.config.recompile_limit == 8
    assert torch.compiler.trace(lambda x: x + 1, torch.ones(2))(torch.ones(2)).tolist() == [2, 2]


def test_gradients_are_not_copied_in_steps_with_writes():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 8), nn.ReLU(), nn.Linear(8, 5)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x, y = torch.randn(2, 3, 8, 8), torch.tensor([1, 4])

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    state = {k: v.clone() for k, v in model.state_dict().items()}
    step(x, y)
    want = [p.grad.clone() for p in model.parameters()] + [v.clone() for v in model.state_dict().values()]
    model.load_state_dict(state)
    optimizer.state.clear()
    program = trace(step, x, y)
    assert " clone(" not in program.explain(x, y).split("# after")[-1]
    program(x, y)
    for got, expected in zip([*(p.grad for p in model.parameters()), *model.state_dict().values()], want):
        assert torch.allclose(got, expected, rtol=1e-5, atol=1e-6)
    first = [p.grad for p in model.parameters()]
    first[0].fill_(7)  # the caller's writes change no other gradient
    for got, expected in zip(first[1:], want[1:]):
        assert torch.allclose(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_random_functions_have_the_same_bits(seed):
    """With in-place writes, views, random numbers and values that are read again much later."""
    choose = random.Random(seed)
    torch.manual_seed(seed)
    w, state = torch.randn(8, 8, requires_grad=True), torch.zeros(8, 8)
    plan = [(choose.randrange(9), choose.random(), choose.random()) for _ in range(25)]

    def step(x):
        values = [x, w * 1.0]
        for kind, first, second in plan:
            a, b = (values[int(r * len(values))] for r in (first, second))
            if kind == 7:
                with torch.no_grad():
                    state.mul_(0.5).add_(a.detach())
                continue
            results = {
                0: lambda: a + b, 1: lambda: (a * 0.1).sin(), 2: lambda: a @ b * 0.1, 3: lambda: torch.sigmoid(a) * b, 4: lambda: a.t(),
                5: lambda: F.dropout(a, 0.5), 6: lambda: (a + state).relu_(), 8: lambda: torch.tanh(a).reshape(64).view(8, 8),
            }  # fmt: skip
            values.append(results[kind]())
        (grad,) = torch.autograd.grad(sum(v.sum() for v in values[1:2] + values[-4:]), [w])
        return grad, values[-1].detach().clone()

    x, results = torch.randn(8, 8), []
    for budget in (1.0, 0.6, 0.3, 0.0):
        with torch.no_grad():
            state.zero_()
        with config.patch(activation_memory_budget=budget):
            program = trace(step, x)
        torch.manual_seed(seed)
        results.append([*program(x), state.clone()])
    for values in results[1:]:
        for got, expected in zip(values, results[0]):
            assert torch.equal(got, expected) or torch.equal(got.isnan(), expected.isnan())


@pytest.mark.skipif(IN_PROCESS, reason="requires an engine of its own")
def test_the_memory_for_small_parts_is_bounded(own_daemon):
    """Every product reads the last of many values: Programs of small parts would grow with the square of their number."""
    engine, saved, environment = own_daemon(), _connection._current, _connection.environment

    def peak_megabytes():
        status = Path(f"/proc/{engine.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024

    def run(budget, calls=1500):
        w = torch.full((4, 4), 0.5, requires_grad=True)

        def step(x):
            w.grad = None
            h, loss = w * 1, 0
            for _ in range(calls):
                h = h.sin()
            for k in range(calls):
                loss = loss + (h @ x + k).tanh().sum()
            loss.backward()
            return loss.detach()

        with config.patch(activation_memory_budget=budget):
            program = trace(step, torch.ones(4, 4))
        loss = program(torch.ones(4, 4))
        return loss.item(), w.grad.tolist()

    try:
        _connection._current = None
        torch.connect(engine.address)
        want, before = run(1.0), peak_megabytes()
        assert run(0.0) == want
        assert peak_megabytes() - before < 80
        torch.disconnect()
    finally:
        _connection._current, _connection.environment = saved, environment
        if saved is not None:
            _C.set_session(saved)
