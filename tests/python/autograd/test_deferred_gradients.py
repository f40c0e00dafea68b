"""Backward passes execute pointwise calls later, as loops: gradients have the bits of single calls (TELETENSOR_WINDOWS=0)."""

from __future__ import annotations

import random

import pytest

import teletensor as torch
import teletensor.nn as nn
import teletensor.nn.functional as F
from teletensor import _C, _connection
from teletensor.utils.checkpoint import checkpoint
from tests.conftest import IN_PROCESS

pytestmark = pytest.mark.skipif(IN_PROCESS, reason="requires engines with another environment")


def bits(tensor):
    """The tensor's bytes, or the message of its error."""
    try:
        return tensor.detach().numpy().tobytes()
    except RuntimeError as error:
        return str(error)


@pytest.fixture
def on_both(own_daemon):
    """Calls a function in a session whose passes defer every pointwise call, and in one that defers none. Returns both
    results as lists of bytes."""
    saved, environment = _connection._current, _connection.environment

    def run(function):
        results = []
        for setting in ("test", "0"):
            _connection._current = None
            torch.connect(own_daemon(TELETENSOR_WINDOWS=setting).address)
            torch.manual_seed(0)
            results.append([bits(t) if isinstance(t, torch.Tensor) else t for t in function()])
            torch.disconnect()
        return results

    yield run
    _connection._current, _connection.environment = saved, environment
    if saved is not None:
        _C.set_session(saved)


def expect_equal(results):
    deferred, single = results
    assert len(deferred) == len(single) > 0
    for i, (got, want) in enumerate(zip(deferred, single)):
        assert got == want, f"result {i}"


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 2 + x * 0


def random_step(seed):
    """A random function of some leaves, differentiated in a random way. Returns its gradients."""
    choose = random.Random(seed)
    torch.manual_seed(seed)
    dtype = choose.choice([torch.float32, torch.float64])
    x, w = (torch.randn(24, 24, dtype=dtype, requires_grad=True) for _ in range(2))
    row = torch.randn(24, dtype=dtype, requires_grad=True)
    leaves = [x, w, row]
    if choose.random() < 0.5:
        w.grad = torch.randn(24, 24, dtype=dtype)
    values = [x, w, x * w]
    for _ in range(choose.randrange(8, 30)):
        a, b = choose.choice(values), choose.choice(values)
        made = choose.choice([
            lambda: a * b, lambda: a + b, lambda: a * row, lambda: torch.sigmoid(a) * b, lambda: torch.tanh(a), lambda: a - 0.5 * b,
            lambda: a @ b * 0.1, lambda: a.t() * b, lambda: (a * 0.5).relu_(), lambda: F.gelu(a), lambda: F.silu(a) * row,
            lambda: a * torch.rsqrt((a * a).mean(-1, keepdim=True) + 1), lambda: F.softmax(a, -1), lambda: a[:12].repeat(2, 1) + b,
            lambda: torch.where(a > b, a, b), lambda: Doubled.apply(a), lambda: a / (1 + b * b), lambda: (a + 1).add_(b).mul_(0.5),
            lambda: a.reshape(12, 48).view(24, 24), lambda: a.sum(0) * b, lambda: a.double().to(dtype).exp().clamp(max=3),
            lambda: checkpoint(lambda c: torch.tanh(c * row) * c, a, use_reentrant=False), lambda: F.dropout(a, 0.3),
            lambda: F.layer_norm(a, (24,), row), lambda: a.pow(2).sqrt(), lambda: a * w.detach(), lambda: a.expand(2, 24, 24).mean(0),
        ])()  # fmt: skip
        if choose.random() < 0.1:
            made.register_hook(lambda g: g * 0.5 + 1)
        if choose.random() < 0.1:
            made.retain_grad()
            leaves.append(made)
        values.append(made.clamp(-10, 10))
    if w.grad is not None:
        values.append(w * w.grad)  # the pass writes to a saved tensor after it has read it
    loss = sum(v.sum() for v in values[-5:]) + values[-1].square().mean()
    how = choose.randrange(6)
    if how == 0:
        grads = torch.autograd.grad(loss, [values[4], x, w], allow_unused=True)
        return [loss, *(g for g in grads if g is not None)]
    if how == 1:
        (g,) = torch.autograd.grad(loss, [x], create_graph=True, allow_unused=True)
        (loss if g is None else g.square().sum() + loss).backward()
    elif how == 2:
        loss.backward(retain_graph=True)
        loss.backward()
    elif how == 3:
        with torch.autograd.set_detect_anomaly(True):
            loss.backward()
    elif how == 4:
        seed_of_values = torch.randn(24, 24, dtype=dtype)
        torch.autograd.backward([values[-1], loss], [seed_of_values, None])
    else:
        loss.backward()
    return [loss, *(t.grad for t in leaves if t.grad is not None)]


def test_random_functions(on_both):
    results = on_both(lambda: [t for seed in range(60) for t in random_step(seed)])
    expect_equal(results)
    assert sum(isinstance(t, bytes) for t in results[0]) > len(results[0]) // 2


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.linear, self.scale = nn.LayerNorm(width), nn.Linear(width, width), nn.Parameter(torch.ones(width))

    def forward(self, x):
        h = self.linear(self.norm(x))
        return x + self.scale * h * torch.sigmoid(1.7 * h)


@pytest.mark.parametrize("width", [64, 512])
def test_training_steps(on_both, width):
    def train():
        model = nn.Sequential(*(Residual(width) for _ in range(3)), nn.Linear(width, 4))
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        x, target = torch.randn(512, width), torch.randint(0, 4, (512,))
        losses = []
        for _ in range(4):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), target)
            loss.backward()
            optimizer.step()
            losses.append(loss)
        return [*losses, *model.parameters()]

    expect_equal(on_both(train))


def test_convolutions_and_layouts(on_both):
    def train():
        model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.SiLU(), nn.Conv2d(8, 8, 3), nn.Hardswish(), nn.MaxPool2d(2))
        x = torch.randn(4, 3, 20, 20, requires_grad=True).to(memory_format=torch.channels_last)
        y = model(x)
        (y * torch.sigmoid(y) * y.mean((2, 3), keepdim=True)).sum().backward()
        return [p.grad for p in model.parameters()]

    expect_equal(on_both(train))


def test_nan_and_infinity_pass_through(on_both):
    def step():
        x = torch.randn(40, 40)
        x[0, 0], x[1, 1], x[2, 2] = float("nan"), float("inf"), -float("inf")
        x.requires_grad_()
        (torch.sigmoid(x * 2) * torch.relu(x) / x).sum().backward()
        return [x.grad.isnan(), x.grad.nan_to_num(1.0)]

    expect_equal(on_both(step))


def test_writes_to_saved_tensors_are_found(on_both):
    def step():
        x = torch.randn(32, 32, requires_grad=True)
        y = x * 2
        z = torch.sigmoid(y) * y
        y.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()
            x.grad.tolist()
        return ["refused"]

    expect_equal(on_both(step))
