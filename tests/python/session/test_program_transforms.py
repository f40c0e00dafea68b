"""Programs of functions that call the transforms of torch.func, make tensors require gradients, or compute floats from sizes."""

from __future__ import annotations

import itertools
import math

import pytest

import teletensor as torch
from teletensor.compiler import trace
from teletensor.func import functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp, vmap
from teletensor.utils import _pytree as pytree


def wave(a):
    return (a.sin() * a).sum()


TRANSFORMED = {
    "grad": grad(wave),
    "grad_and_value": grad_and_value(wave),
    "gradients of gradients": grad(lambda a: grad(wave)(a).square().sum()),
    "vmap of grad": vmap(grad(wave)),
    "vjp": lambda x: vjp(torch.sin, x)[1](x)[0],
    "jacrev": lambda x: jacrev(lambda a: a.sin() * a)(x[0]),
    "jacfwd": lambda x: jacfwd(lambda a: a.sin() * a)(x[0]),
    "hessian": lambda x: hessian(wave)(x[0]),
    "vmap of hessian": vmap(hessian(wave)),
    "jvp of grad": lambda x: jvp(grad(wave), (x,), (x.cos(),))[1],
    "per-sample gradients": lambda x: vmap(grad(lambda w, a: (w @ a).sin().sum()), in_dims=(None, 0))(torch.ones(6), x),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_transforms(name):
    f = TRANSFORMED[name]
    x, other = torch.randn(4, 6), torch.randn(4, 6)
    program = trace(f, x)
    for given in (x, other):
        found, wanted = pytree.tree_leaves(program(given)), pytree.tree_leaves(f(given))
        for a, b in zip(found, wanted, strict=True):
            torch.testing.assert_close(a, b)
            assert not a.requires_grad


def test_other_sizes():
    f = TRANSFORMED["gradients of gradients"]
    program = trace(f, torch.randn(4, 6))
    x = torch.randn(7, 9)
    torch.testing.assert_close(program(x), f(x))
    program = trace(TRANSFORMED["vmap of grad"], torch.randn(4, 6))
    with pytest.raises(ValueError, match=r"requires size\(input 0, 0\) == 4"):
        program(torch.randn(7, 6))  # vmap needs numbers


def test_runs_without_gradients():
    w = torch.randn(4, 6, requires_grad=True)

    def f(x):
        return grad(wave)(x), x * w

    x = torch.randn(4, 6)
    traced = trace(f, x)
    with torch.no_grad():
        traced_without = trace(f, x)
    recorded = f(x)
    for program, mode in itertools.product((traced, traced_without), (torch.no_grad, torch.inference_mode)):
        with mode():
            found, wanted = program(x), f(x)
        for a, b, c in zip(found, wanted, recorded, strict=True):
            torch.testing.assert_close(a, b)
            torch.testing.assert_close(b, c.detach())
            assert not a.requires_grad
    assert traced(x)[1].requires_grad and not traced_without(x)[1].requires_grad


def test_forward_and_backward_are_expanded():
    explained = torch.compiler.explain(TRANSFORMED["gradients of gradients"], torch.randn(600, 8))
    assert "after expand, merge_equal" in explained and "backward" not in explained[explained.index("# after expand") :].split("#")[1]


def test_parameters_are_read_at_every_run():
    model = torch.nn.Linear(6, 3)
    for p in model.parameters():
        p.requires_grad_(False)

    def f(x):
        return vmap(grad(lambda a: functional_call(model, dict(model.named_parameters()), (a,)).square().sum()))(x)

    x = torch.randn(4, 6)
    program = trace(f, x)
    model.weight.mul_(2)
    torch.testing.assert_close(program(x), f(x))


def test_leaves_that_the_function_makes():
    def f(x, w):
        a, b = x.detach().requires_grad_(), x.detach().requires_grad_()
        y = ((a * w).sin() + b * 3).sum()
        first, second = torch.autograd.grad(y, (a, b), create_graph=True)
        return first.detach(), second.detach(), torch.autograd.grad(first.sum(), a)[0]

    x, w = torch.randn(4), torch.randn(4)
    for found, wanted in zip(trace(f, x, w)(x, w), f(x, w), strict=True):
        torch.testing.assert_close(found, wanted)


def test_a_training_step_with_a_gradient_penalty():
    def trained(is_traced: bool) -> list[float]:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

        def step(x, y):
            optimizer.zero_grad()
            middle = ((x + y) / 2).detach().requires_grad_()
            (slope,) = torch.autograd.grad(model(middle).sum(), middle, create_graph=True)
            loss = model(x).mean() - model(y).mean() + 10 * ((slope.norm(dim=1) - 1) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        x, y = torch.randn(32, 6), torch.randn(32, 6)
        run = trace(step, x, y) if is_traced else step
        return [run(x, y).item() for _ in range(4)]

    assert trained(True) == pytest.approx(trained(False), rel=1e-5)


def test_what_is_refused():
    w = torch.ones(3, requires_grad=True)

    def used_before(x):
        y = x * 2
        z = y.detach()
        _ = z + 1
        return z.requires_grad_()

    def removed(x):
        leaf = x.detach().requires_grad_()
        found = torch.autograd.grad((leaf * 2).sum(), leaf)[0]
        return found + leaf.requires_grad_(False)

    refused = {
        "tensor that exists outside": lambda x: x.requires_grad_(),
        r"with False.*use detach\(\)": removed,
        "after a call that has used": used_before,
        "begins at a tensor that it has made": lambda x: x.detach().requires_grad_() * 2,
        r"history \(create_graph=True\)": lambda x: torch.autograd.grad((w * x).sin().sum(), w, create_graph=True)[0],
        "sets .grad": lambda x: (w * x).sum().backward(create_graph=True),
    }
    for match, f in refused.items():
        with pytest.raises(NotImplementedError, match=match):
            trace(f, torch.ones(3))


# ---- Autocast


def _training(dtype=torch.bfloat16):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

    def step(x, target):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=dtype):
            y = model(x)
            y = y + model(x * 0.5)  # the parameters are cast once per region
            loss = torch.nn.functional.cross_entropy(y, target)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step, model


@pytest.mark.parametrize("kind", ["trace", "compile"])
def test_a_training_step_under_autocast(kind):
    x, target = torch.randn(32, 8), torch.randint(0, 4, (32,))
    (single, model), (step, other) = _training(), _training()
    torch._dynamo.reset()
    torch._dynamo.utils.counters["engine"].clear()
    run = trace(step, x, target) if kind == "trace" else torch.compile(step, fullgraph=True)
    assert [run(x, target).item() for _ in range(4)] == pytest.approx([single(x, target).item() for _ in range(4)], rel=1e-5)
    for a, b in zip(model.parameters(), other.parameters()):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    if kind == "trace":
        assert run.text.count("to_dtype(%") >= 5
    else:
        assert set(torch._dynamo.utils.counters["engine"]) == {"programs"}


def test_casts_of_autocast():
    w = torch.randn(8, 8, requires_grad=True)

    def f(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = (x @ w) @ w
            z = torch.cat([y, x])  # in the widest dtype
        return y, z, x @ w

    x = torch.randn(4, 8)
    program = trace(f, x)
    for found, wanted in zip(program(x), f(x), strict=True):
        assert found.dtype == wanted.dtype and torch.equal(found, wanted)
    found = torch.autograd.grad(program(x)[0].float().sum(), w)[0]
    assert torch.equal(found, torch.autograd.grad(f(x)[0].float().sum(), w)[0])


def test_a_compiled_function_that_is_called_under_autocast():
    model = torch.nn.Linear(8, 8)
    torch._dynamo.reset()
    torch._dynamo.utils.counters["engine"].clear()
    compiled = torch.compile(lambda x: model(x).relu().sum(), fullgraph=True)
    x = torch.randn(4, 8)
    for dtype in (torch.bfloat16, torch.float16, torch.bfloat16):
        with torch.autocast("cpu", dtype=dtype):
            found, wanted = compiled(x), model(x).relu().sum()
            assert torch.is_autocast_enabled("cpu")
        assert found.dtype == wanted.dtype and torch.equal(found, wanted)
        model.zero_grad()
        found.backward()
        gradient = model.weight.grad
        model.zero_grad()
        wanted.backward()
        assert torch.equal(gradient, model.weight.grad)
    assert set(torch._dynamo.utils.counters["engine"]) == {"programs"}


# ---- Floats of sizes

FLOATS = {
    "half": lambda x: x * (x.size(0) * 0.5),
    "quotient": lambda x: x / (x.size(0) / 3) + x.size(1) / 2,
    "scale of attention": lambda x: (x @ x.T) * x.size(1) ** -0.5,
    "root": lambda x: x / torch.sym_sqrt(x.size(1)),
    "reflected": lambda x: x - (1.0 / x.size(1) + 2),
    "extremum": lambda x: x * torch.sym_max(x.size(0) / 3, 1.5) * torch.sym_min(x.size(0), 4.5),
    "sym_float": lambda x: torch.sym_float(x.size(0)) - x,
    "function": lambda x: torch.mul(x, x.size(0) * 0.5).div(x.size(1) * 2.0),
    "in place": lambda x: (x + 1).mul_(x.size(0) * 0.5).add_(-(x.size(1) / 2)),
    "gradient": lambda x: grad(lambda a: (a * a * (x.size(0) / 7)).sum())(x),
}


@pytest.mark.parametrize("name", FLOATS)
def test_floats_of_sizes(name):
    f = FLOATS[name]
    program = trace(f, torch.randn(4, 6))
    for sizes in ((4, 6), (9, 6), (5, 20), (2, 2)):
        x = torch.randn(*sizes)
        torch.testing.assert_close(program(x), f(x), rtol=1e-6, atol=1e-7)


def test_comparisons_of_floats_are_required():
    program = trace(lambda x: x * 2 if x.size(0) / 2 > 1.6 else x * 3, torch.randn(8))
    assert torch.equal(program(torch.ones(4)), torch.full((4,), 2.0))
    with pytest.raises(ValueError, match=r"requires size\(input 0, 0\) >= 4"):
        program(torch.ones(3))
    program = trace(lambda x: x * 2 if 3.0 / x.size(0) >= 1 else x * 3, torch.randn(8))
    with pytest.raises(ValueError, match=r"requires size\(input 0, 0\) >= 4"):
        program(torch.ones(3))


def test_other_uses_need_the_number():
    uses = {
        "function of Python": lambda x: x * math.sqrt(x.size(0)),
        "argument": lambda x: torch.nn.functional.elu(x, alpha=x.size(0) * 0.5),
        "integers": lambda x: x.long() * (x.size(0) * 0.5),
        "int": lambda x: x[: int(x.size(0) * 0.5)] * 1,
    }
    for f in uses.values():
        x = torch.arange(8.0)
        program = trace(f, x)
        assert torch.equal(program(x), f(x))
        with pytest.raises(ValueError, match=r"requires size\(input 0, 0\) == 8"):
            program(torch.arange(6.0))


def test_types():
    found = []

    def f(x):
        half = x.size(0) * 0.5
        found.append((type(half), isinstance(half, torch.SymFloat), half == 2.0, str(half), f"{half:.2f}", round(half), half.is_integer()))
        return x * half

    trace(f, torch.ones(4))
    assert found == [(torch.SymFloat, True, True, "2.0", "2.00", 2, True)]
    kept = []
    trace(lambda x: kept.append(x.size(0) * 0.5) or x, torch.ones(4))
    assert float(kept[0]) == 2.0 and torch.equal(kept[0] * torch.ones(2), torch.full((2,), 2.0))
    assert trace(lambda x: (x + 1, x.size(0) * 0.5), torch.ones(4))(torch.ones(4))[1] == 2.0
