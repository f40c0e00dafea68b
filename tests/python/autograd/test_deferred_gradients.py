"""Backward passes execute pointwise calls later, as loops: gradients have the bits of single calls (TELETENSOR_WINDOWS=0)."""

from __future__ import annotations

import random
import subprocess
import sys
import textwrap

import pytest

import teletensor as torch
import teletensor.nn as nn
import teletensor.nn.functional as F
from teletensor import _C, _connection
from teletensor.utils.checkpoint import checkpoint
from tests.conftest import IN_PROCESS, Daemon

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

    def run(function, **options):
        results = []
        for setting in ("test", "0"):
            _connection._current = None
            torch.connect(own_daemon(TELETENSOR_WINDOWS=setting).address, **options)
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


@pytest.mark.parametrize("size", [40, 200])
def test_hooks_of_calls_that_several_nodes_compute(on_both, size):
    """Their gradients are summed before the hooks run."""
    losses = [
        lambda t, u: F.binary_cross_entropy_with_logits(t * 1.5, u, reduction="none"),
        lambda t, u: F.kl_div(u, t.sigmoid(), reduction="none"),
        lambda t, u: F.kl_div(t.log_softmax(-1), u.log(), reduction="none", log_target=True),
        lambda t, u: F.gaussian_nll_loss(t * 2, u, t.sigmoid() + 0.1, reduction="none"),
        lambda t, u: F.poisson_nll_loss(t * 0.5, u, full=True, reduction="none"),
        lambda t, u: F.huber_loss(t * 1.5, u, reduction="none") * t,
        lambda t, u: F.cosine_similarity(t * 2, t.sigmoid() * u, dim=0) * t,
    ]

    def step():
        results = []
        for loss in losses:
            for change in (lambda gi, go: None, lambda gi, go: tuple(None if g is None else g * 2 for g in gi)):
                t, u = torch.randn(size, size, requires_grad=True), torch.rand(size, size)
                y = loss(t, u)
                y.grad_fn.register_hook(change)
                y.grad_fn.register_prehook(lambda go: None)
                y.sum().backward()
                results += [y, t.grad]
        return results

    expect_equal(on_both(step))


@pytest.mark.slow
def test_arguments_of_deferred_calls_do_not_raise_the_peak(own_daemon):
    """A pass fits into the memory that single calls need, and two results."""
    n, saved, environment = 1024, _connection._current, _connection.environment
    addresses = [own_daemon(TELETENSOR_WINDOWS=setting).address for setting in ("0", "1")]

    def gradients(address, limit):
        _connection._current = None
        torch.connect(address, memory_limit=limit << 20)
        try:
            torch.manual_seed(0)
            x, w = torch.randn(n, n, requires_grad=True), torch.randn(n, n)
            factors, y = [x @ w for _ in range(12)], x
            for factor in factors:
                y = y * factor
            del factors, factor
            loss = y.sum()
            del y
            loss.backward()
            return bits(x.grad)
        except RuntimeError as error:
            return str(error)
        finally:
            torch.disconnect()

    try:
        needed = next(limit for limit in range(100, 200, 4) if isinstance(gradients(addresses[0], limit), bytes))
        want = gradients(addresses[0], needed)
        assert gradients(addresses[1], needed + 2 * 4) == want
    finally:
        _connection._current, _connection.environment = saved, environment
        if saved is not None:
            _C.set_session(saved)


def test_the_first_error_stays(on_both):
    """A pass that cannot store its gradients fails with that error, even if a hook continues it."""

    def step():
        n = 1024  # 4 MiB
        x = torch.randn(n, n, requires_grad=True)
        w = x * 1
        y = w.sin()
        w.retain_grad()
        y.register_hook(lambda g: torch.zeros(1).expand(n, n))
        z = y.exp()
        ballast = []
        with pytest.raises(RuntimeError, match="out of memory"):
            while True:
                ballast.append(torch.ones(1 << 18))
                ballast[-1][0].item()
        ballast.pop()
        z.sum().backward()
        with pytest.raises(RuntimeError, match="out of memory"):
            w.grad.sum().item()
        with pytest.raises(RuntimeError, match="out of memory"):
            x.grad.sum().item()
        return ["failed"]

    expect_equal(on_both(step, memory_limit=48 << 20))


KILLED = """
    import sys
    import teletensor as torch
    from teletensor.utils.checkpoint import checkpoint

    address, number, case = sys.argv[1:]
    torch.connect(address)
    import os, signal

    def kill(*_):
        os.kill(int(number), signal.SIGKILL)

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            kill()
            return g * torch.ones(()).item()

    calls = []

    def again(x):
        calls.append(0)
        if len(calls) == 2:
            kill()
            torch.ones(3).sum().item()
        return x.sin() * x

    def unpack(values):
        kill()
        return torch.tensor(values)

    x = torch.randn(300, 300, requires_grad=True)
    y = x.sin()

    def waits(*arguments):
        kill()
        gradient = arguments[0][0] if isinstance(arguments[0], tuple) else arguments[0]
        gradient.sum().item()

    if case == "hook":
        y.register_hook(waits)
    elif case == "hook that does not wait":
        y.register_hook(kill)
    elif case == "node hook":
        y.grad_fn.register_hook(waits)
    elif case == "node prehook":
        y.grad_fn.register_prehook(waits)
    elif case == "function":
        y = Function.apply(y)
    elif case == "checkpoint":
        y = checkpoint(again, y, use_reentrant=False)
    elif case == "saved tensors":
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(), unpack):
            y = y.exp()
    try:
        y.sum().backward()
        x.grad.sum().item()
    except ConnectionError as error:
        print("caught", error)
    try:
        torch.ones(3).sum().item()
    except ConnectionError as error:
        print("caught", error)
"""


@pytest.mark.parametrize(
    "case", ["hook", "hook that does not wait", "node hook", "node prehook", "function", "checkpoint", "saved tensors"]
)
def test_an_engine_that_dies_in_a_pass_raises(tmp_path, case):
    engine = Daemon(tmp_path, TELETENSOR_WINDOWS="test")
    try:
        command = [sys.executable, "-c", textwrap.dedent(KILLED), engine.address, str(engine.process.pid), case]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    finally:
        engine.process.kill()
        engine.process.wait(20)
        engine.log.close()
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("caught [connection]") == 2, ended.stdout
