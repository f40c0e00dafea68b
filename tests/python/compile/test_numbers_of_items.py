"""Floats of `item()` as operands of numbers and as arguments of calls, with fullgraph=True; lines of errors in such graphs."""

from __future__ import annotations

import weakref

import pytest

import teletensor as torch
from teletensor import distributions, nn
from teletensor.nn import functional as F

from .asserts import under_autocast


class Scale:
    k = 2


SCALE = Scale()


def quotient(x, y):
    return y / (x.std().item() + 1e-6) - abs(x.mean().item())


def total(x, y):
    t = 0.0
    for v in (x, y):
        t += v.sum().item()
    return y * t, t, {"loss": -t}


def bounded(x, y):
    n = x.max().int().item()
    return y.clamp(-x.sum().item(), max=n), x / max(x.sum().item(), 1.0), n / 2


def filled(x, y):
    s = x.sum().item()
    made = torch.tensor([s, 1.0]) + torch.full((2,), s * 2 + 1).sum() + x.new_full((2,), s).mean()
    return made, x.masked_fill(x > 1, s), torch.add(x, y, alpha=s), x.pow(s), x.sum() * s, x.long() * s, s**2 // 3


def referred(x, _):
    r = weakref.ref(SCALE)
    return x * r().k if r() is SCALE else x


def marked(x, y):
    z = y * 2
    z.foo, x.bar = x, 3
    return z, z.foo + hasattr(z, "bar") + x.bar


def divergence(x, y):
    p, q = distributions.Normal(x, y.abs() + 1), distributions.Normal(x * 0, y.abs() + 2)
    logits = distributions.Categorical(logits=x), distributions.Categorical(logits=y)
    return distributions.kl_divergence(p, q), distributions.kl_divergence(*logits)


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("function", [quotient, total, bounded, filled, referred, marked, divergence, under_autocast])
def test_results_are_those_of_plain_python(function, backend):
    torch._dynamo.reset()
    compiled = torch.compile(function, backend=backend, fullgraph=True)
    for i in range(3):
        x, y = torch.tensor([0.0, 1.0, 2.0, 3.5]) + i, torch.tensor([5.0, 6.0, -1.0, 2.0]) * (i + 1)
        got, want = compiled(x, y), function(x, y)
        assert repr(got) == repr(want)
        torch.testing.assert_close(got, want, rtol=0, atol=0)
        if function is marked:
            assert got[0].foo is x and x.bar == 3
    if function is divergence:
        with pytest.raises(NotImplementedError, match="No KL"):
            torch.compile(lambda: distributions.kl_divergence(distributions.Normal(0.0, 1.0), distributions.Cauchy(0.0, 1.0)))()


def test_a_function_for_other_divergences_is_called(monkeypatch):
    registry = distributions.kl._KL_REGISTRY
    compiled = torch.compile(lambda x: distributions.kl_divergence(distributions.Normal(x, x), distributions.Normal(x, x)))
    assert compiled(torch.ones(2)).tolist() == [0, 0]
    monkeypatch.setitem(registry, (distributions.Normal, distributions.Normal), lambda p, q: p.loc * 7)
    assert compiled(torch.ones(2)).tolist() == [7, 7]


def divided(x, y):
    n = x.max().int().item()
    k = 10 // (n - 3)
    return y + k


def selected(x, y):
    n = x.max().int().item()
    return selected_in_callee(y * 2, torch.tensor([n + 7])) + y


def selected_in_callee(y, n):
    return y.index_select(0, n)


def last(*values):
    return values[-1]


def selected_in_argument(x, y):
    n = torch.tensor([x.max().int().item() + 7])
    return last(
        y.exp(),
        y.index_select(0, n),
    )


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_errors_name_the_users_line(backend):
    torch._dynamo.reset()
    with pytest.raises(ZeroDivisionError) as caught:
        torch.compile(divided, backend=backend, fullgraph=True)(torch.arange(4.0), torch.ones(4))
    innermost = caught.traceback[-1]
    assert (str(innermost.path), innermost.lineno) == (__file__, divided.__code__.co_firstlineno + 1)
    with pytest.raises(IndexError) as caught:
        torch.compile(selected, backend=backend, fullgraph=True)(torch.arange(4.0), torch.ones(4)).tolist()
    assert f"{__file__}:{selected_in_callee.__code__.co_firstlineno + 1} in selected_in_callee" in str(caught.value)


def test_errors_name_the_line_of_an_argument():
    with pytest.raises(IndexError, match=f"{__file__}:{selected_in_argument.__code__.co_firstlineno + 4} in selected_in_argument"):
        torch.compile(selected_in_argument, fullgraph=True)(torch.arange(4.0), torch.ones(4)).tolist()


def test_a_failed_assertion_leaves_autocast():
    compiled = torch.compile(under_autocast, fullgraph=True)
    with pytest.raises(AssertionError, match="bad"):
        compiled(torch.full((4,), 200.0), torch.ones(4))
    assert not torch.is_autocast_enabled("cpu")
    assert compiled(torch.ones(4), torch.ones(4)).dtype == torch.bfloat16


def test_a_division_whose_error_is_caught_ends_the_graph():
    def function(x):
        try:
            return x / (1 / x.sum().item())
        except ZeroDivisionError:
            return x - 1

    x = torch.zeros(3)
    assert torch.compile(function)(x).tolist() == [-1, -1, -1]
    with pytest.raises(torch._dynamo.exc.Unsupported, match="may be caught"):
        torch.compile(function, fullgraph=True)(x)


@torch.library.custom_op("test_numbers_of_items::repeated", mutates_args=())
def repeated(x: torch.Tensor, count: float) -> torch.Tensor:
    return x.repeat(int(count))


@repeated.register_fake
def _(x, count):
    return x.new_empty(len(x) * int(count))


SIZES_BY_FLOATS = [
    lambda x, s: F.interpolate(x[None, None], scale_factor=[s]),
    lambda x, s: nn.Upsample(scale_factor=(s,))(x[None, None]),
    lambda x, s: torch.ops.aten.arange.default(s),
    lambda x, s: torch.ops.aten.upsample_nearest1d.vec(x[None, None], None, [s]),
    lambda x, s: torch.arange(s, s + 1),
    lambda x, s: torch.arange(max(s, 2.0)),
    repeated,
]


@pytest.mark.parametrize("call", SIZES_BY_FLOATS)
def test_calls_whose_sizes_depend_on_floats_end_the_graph(call, monkeypatch):
    def function(x):
        made = call(x, x[1].item())
        return made / made.shape[-1], made.numel()

    x = torch.tensor([3.0, 2.0, 0.5])
    with pytest.raises(torch._dynamo.exc.Unsupported, match="with a float that depends on values"):
        torch.compile(function, fullgraph=True)(x)
    monkeypatch.setattr(torch._dynamo.config, "capture_scalar_outputs", True)
    assert repr(torch.compile(function)(x)) == repr(function(x))


@pytest.mark.parametrize("sign", ["/", "//", "%"])
@pytest.mark.parametrize("is_int", [False, True])
def test_a_division_by_zero_raises_before_later_writes(sign, is_int):
    namespace = {}
    exec(f"def function(x, s):\n    n = 1 {sign} s.item()\n    x.add_(1)\n    return x * 2", namespace)
    compiled = torch.compile(namespace["function"], fullgraph=True)
    x, dtype = torch.zeros(2), torch.int64 if is_int else torch.float32
    with pytest.raises(ZeroDivisionError):
        compiled(x, torch.tensor(0, dtype=dtype))
    assert x.tolist() == [0, 0]
    assert compiled(x, torch.tensor(2, dtype=dtype)).tolist() == [2, 2]


def test_divisions_that_raise_keep_earlier_effects():
    def function(x, s, found):
        found.append(1)
        return x * (1 / s.item())

    def by_zero(x):
        return x.item() / 0

    found = []
    with pytest.raises(torch._dynamo.exc.Unsupported, match="would follow writes"):
        torch.compile(function, fullgraph=True)(torch.ones(2), torch.tensor(0.0), found)
    with pytest.raises(ZeroDivisionError):
        torch.compile(function)(torch.ones(2), torch.tensor(0.0), found)
    assert found == [1]
    with pytest.raises(torch._dynamo.exc.Unsupported, match="by zero"):
        torch.compile(by_zero, fullgraph=True)(torch.ones([]))


def test_a_weak_reference_after_writes_runs_plainly():
    def function(x, owners):
        r = weakref.ref(owners[0])
        owners.clear()
        return r() is None, x + 1

    assert torch.compile(function)(torch.ones([]), [Scale()])[0]
    with pytest.raises(torch._dynamo.exc.Unsupported, match="weak reference after writes"):
        torch.compile(function, fullgraph=True)(torch.ones([]), [Scale()])
