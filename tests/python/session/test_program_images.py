"""Programs over images: the passes that keep channels last and that join convolutions with what follows them keep every
bit, whatever the model writes in place."""

from __future__ import annotations

import random

import pytest

import teletensor as torch
import teletensor.nn as nn
import teletensor.nn.functional as F
from tests.python.session.test_programs import same

trace = torch.compiler.trace


@pytest.fixture(autouse=True)
def _inference(monkeypatch):
    monkeypatch.setenv("TELETENSOR_EXACT_PROGRAMS", "1")
    with torch.no_grad():
        yield


def trained(norm: nn.Module) -> nn.Module:
    """A norm with statistics that are not those of a new one."""
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.5, 2)
    norm.weight.uniform_(0.5, 2)
    norm.bias.normal_()
    return norm


class Residual(nn.Module):
    def __init__(self, channels: int, out: int, stride: int = 1, activation=nn.ReLU, groups: int = 1) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(channels, out, 3, stride, 1, bias=False, groups=groups),
                                   trained(nn.BatchNorm2d(out)), activation(inplace=True))  # fmt: skip
        self.second = nn.Sequential(nn.Conv2d(out, out, 1), trained(nn.BatchNorm2d(out)))
        self.shortcut = nn.Identity()
        if stride != 1 or channels != out:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, out, 1, stride), trained(nn.BatchNorm2d(out)))
        self.last = activation(inplace=True)

    def forward(self, x):
        out = self.second(self.first(x))
        out += self.shortcut(x)
        return self.last(out)


def network(channels: int = 3) -> nn.Module:
    torch.manual_seed(1)
    layers = [nn.Conv2d(channels, 16, 5, 2, 2, bias=False), trained(nn.BatchNorm2d(16)), nn.ReLU(inplace=True)]
    layers += [nn.MaxPool2d(3, 2, 1), Residual(16, 16), Residual(16, 32, 2, nn.ReLU6), nn.AvgPool2d(2)]
    layers += [Residual(32, 32, 1, nn.Hardswish, groups=32), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)]
    return nn.Sequential(*layers).eval()


@pytest.mark.parametrize("batch,size,channels", [(1, 40, 3), (3, 33, 3), (2, 40, 1), (2, 16, 3), (20, 64, 3)])
def test_network(batch, size, channels):
    model, x = network(channels), torch.randn(batch, channels, size, size)
    program = trace(model, x)
    same(program(x), model(x))
    text = program.explain(x)
    assert (
        "activation='hardswish'" in text
        and "activation='relu6'" in text
        and "batch_norm" not in text.split("# after")[-1]
    )
    same(program(x.flip(0)), model(x.flip(0)))
    last = x.to(memory_format=torch.channels_last)
    same(program(last), model(last))
    other = torch.randn(batch + 1, channels, size, size)
    same(program(other), model(other))


def test_parameters_and_statistics_are_read_at_every_run():
    model, x = network(), torch.randn(2, 3, 32, 32)
    program = trace(model, x)
    before = program(x)
    model[1].running_mean += 1
    model[4].second[1].weight *= 2
    model[0].weight *= 0.5
    same(program(x), model(x))
    assert not torch.equal(before, program(x))


ACTIVATIONS = {
    "relu": F.relu, "relu6": F.relu6, "hardswish": F.hardswish, "hardsigmoid": F.hardsigmoid, "silu": F.silu,
    "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "sigmoid": torch.sigmoid, "tanh": torch.tanh,
    "mish": F.mish, "leaky_relu": F.leaky_relu, "elu": F.elu,
}  # fmt: skip


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_activations(name, layout):
    conv, norm = nn.Conv2d(8, 16, 3, padding=1), trained(nn.BatchNorm2d(16)).eval()
    for f in (lambda x: ACTIVATIONS[name](norm(conv(x))), lambda x: ACTIVATIONS[name](conv(x))):
        x = (torch.randn(5, 8, 24, 20) * 3).contiguous(memory_format=layout)
        program = trace(f, x)
        text = program.explain(x).split("# after")[-1]
        assert f"activation='{name}'" in text and f"= {name}(" not in text
        same(program(x), f(x))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("activation", ACTIVATIONS.values(), ids=list(ACTIVATIONS))
def test_special_values(value, activation):
    conv, norm = nn.Conv2d(4, 8, 3, padding=1), trained(nn.BatchNorm2d(8)).eval()

    def f(x):
        return activation(norm(conv(x))), activation(conv(x) + conv(x).flip(1))

    x = torch.randn(2, 4, 9, 9)
    x[1, 2, 3, 4] = value
    for got, want in zip(trace(f, x)(x), f(x)):
        assert torch.equal(got.isnan(), want.isnan())
        assert torch.equal(got.nan_to_num(), want.nan_to_num())


@pytest.mark.parametrize("dims", [1, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_other_dimensions_and_dtypes(dims, dtype):
    conv = getattr(nn, f"Conv{dims}d")(4, 6, 3, padding=1, dtype=dtype)
    norm = trained(getattr(nn, f"BatchNorm{dims}d")(6, dtype=dtype)).eval()

    def f(x):
        return F.relu(norm(conv(x)))

    x = torch.randn(2, 4, *[7] * dims, dtype=dtype)
    program = trace(f, x)
    same(program(x), f(x))
    assert "fused_convolution" in program.explain(x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int32])
@pytest.mark.parametrize("size", [9, 0])
def test_channels_last_inputs(dtype, size):
    torch.manual_seed(3)
    x, w, b = torch.randn(2, 4, size, 9) * 3, torch.randn(6, 4, 3, 3) * 3, torch.randn(6) * 3
    x, w, b = (t.to(dtype) for t in (x, w, b))
    last = x.contiguous(memory_format=torch.channels_last)
    padding = (1, 1) if size else (3, 1)
    same(F.conv2d(last, w, b, padding=padding).contiguous(), F.conv2d(x, w, b, padding=padding))
    if not dtype.is_floating_point or not size:
        return
    norm = trained(nn.BatchNorm2d(6)).to(dtype).eval()

    def f(x):
        return F.relu(norm(F.conv2d(x, w, b, padding=1)))

    for given in (x, last):
        same(trace(f, given)(given), f(given))
        same(norm(F.conv2d(last, w, b)).contiguous(), norm(F.conv2d(x, w, b)))
    for got, want in zip(
        F.max_pool2d(last, 3, 2, 1, return_indices=True), F.max_pool2d(x, 3, 2, 1, return_indices=True)
    ):
        same(got.contiguous(), want)


def test_results_that_others_read_are_kept():
    conv, norm = nn.Conv2d(3, 8, 3), trained(nn.BatchNorm2d(8)).eval()

    def f(x):
        a = conv(x)
        b = norm(a)
        c = F.relu(b + a)
        return a, b, c, c.sum((2, 3)), c.permute(0, 2, 3, 1).reshape(-1), a[:, 1:3] * 2

    x = torch.randn(2, 3, 12, 12)
    for got, want in zip(trace(f, x)(x), f(x)):
        same(got, want)


def test_training_norms_still_write():
    model, x = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True)), torch.randn(4, 3, 12, 12)
    program = trace(model, x)
    mean, tracked = model[1].running_mean.clone(), model[1].num_batches_tracked.item()
    program(x)
    assert not torch.equal(mean, model[1].running_mean) and model[1].num_batches_tracked.item() == tracked + 1


def test_writes_become_values():
    def f(x):
        y = x @ x
        y.relu_()
        view = y.t()
        y += 1  # also seen by the view
        z = x.exp()
        z.mul_(2).add_(y)
        return y.clone(), view.clone(), z

    x = torch.randn(100, 100)
    program = trace(f, x)
    for got, want in zip(program(x), f(x)):
        same(got, want)
    text = program.explain(x).split("# after functionalise")[1]
    assert "<- add(" in text and "<- mul" not in text and "<- relu" not in text


def test_writes_through_views_reach_what_they_share():
    w = torch.ones(3, requires_grad=True)

    def identity(x):
        h = x + 1
        v = (h * 1.0).view(-1)
        v.add_(1)
        return h, v * 2

    def of_input(x):
        v = (x * 1.0).view(-1)
        v.add_(1)
        return v * 1

    def equal(x):
        p, q = (x + 1).view(-1), (x + 1).view(-1)
        p.add_(5)
        return p * 1, q * 1

    def differentiated(x):
        p, q, y = (x + 1).view(-1), (x + 1).view(-1), x + 2
        v, c = y.view(-1), y.clone()
        (g,) = torch.autograd.grad((w * x).sum(), w)
        p.add_(5)
        c.add_(1)
        return p * 1, q * 1, v * 1, c * 1, g

    def returned(x):
        return (x + 1).view(-1), (x + 1).view(-1), (x * 1.0).view(-1)

    x = torch.zeros(3)
    for f in (identity, of_input, equal, returned):
        got, want = trace(f, x)(x), f(x)
        for a, b in zip(got, want) if isinstance(got, tuple) else [(got, want)]:
            same(a, b)
    with torch.enable_grad():
        for a, b in zip(trace(differentiated, x)(x), differentiated(x)):
            same(a, b)
    p, q, v = trace(returned, x)(x)
    p += 1
    v += 1
    assert q.tolist() == [1, 1, 1] and x.tolist() == [0, 0, 0]


def test_writes_without_gradients_keep_those_of_the_value():
    def f(x, w):
        h = x @ w
        with torch.no_grad():
            h.mul_(3)
        loss = (h * h).sum() + w.sum()
        (g,) = torch.autograd.grad(loss, w)
        return g

    x, w = torch.randn(3, 3), torch.randn(3, 3, requires_grad=True)
    with torch.enable_grad():
        same(trace(f, x, w)(x, w), f(x, w))


def random_images(draw: random.Random):
    """A function of images whose calls read and write what earlier ones have computed."""
    kinds = ["conv", "conv", "depthwise", "norm", "activation", "write", "sum", "pool", "view", "channels", "gate"]
    steps = [(draw.choice(kinds), draw.random(), draw.random()) for _ in range(draw.randint(4, 14))]
    torch.manual_seed(draw.randrange(1000))
    convs = [nn.Conv2d(8, 8, draw.choice([1, 3]), padding=draw.choice([0, 1])) for _ in steps]
    depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
    norms = [trained(nn.BatchNorm2d(8)).eval() for _ in steps]

    def f(x):
        values = [x]
        for k, (kind, i, j) in enumerate(steps):
            a = values[int(i * len(values))]
            same_size = [v for v in values if v.shape == a.shape]
            b = same_size[int(j * len(same_size))]
            if kind == "conv":
                y = convs[k](F.pad(a, (1, 1, 1, 1)))
            elif kind == "depthwise":
                y = depthwise(a)
            elif kind == "norm":
                y = norms[k](a)
            elif kind == "activation":
                y = [F.relu, F.relu6, F.hardswish, F.silu][int(j * 4)](a)
            elif kind == "write":
                y = a * 1
                y += b
                F.relu(y, inplace=True)
            elif kind == "sum":
                y = a + b
            elif kind == "pool":
                y = F.max_pool2d(a, 3, 1, 1) if j < 0.5 else F.avg_pool2d(a, 3, 1, 1)
            elif kind == "view":
                y = a.transpose(2, 3).flip(1)
            elif kind == "channels":
                y = torch.cat([a[:, :4], b[:, 4:]], 1)
            else:
                y = F.adaptive_avg_pool2d(a, 1).sigmoid() * a
            values.append(y.clamp(-50, 50))
        return values[-1], sum(v.mean() for v in values)

    return f


@pytest.mark.parametrize("seed", range(30))
def test_random_images(seed):
    f = random_images(random.Random(seed))
    x = torch.randn(2, 8, 10, 10, generator=torch.Generator().manual_seed(seed))
    for got, want in zip(trace(f, x)(x), f(x)):
        same(got, want)
