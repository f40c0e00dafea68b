"""torch.utils.checkpoint: gradients, whichever way they are requested, are those of the function without it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import IN_PROCESS, client_environment


@pytest.fixture
def checkpoint(torch):
    from teletensor.utils.checkpoint import checkpoint

    return checkpoint


def plain(function, *args, use_reentrant=None):
    return function(*args)


@pytest.fixture
def layer(torch):
    torch.manual_seed(0)
    return torch.nn.Linear(3, 3)


def inputs(torch):
    return torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_()


REENTRANT = pytest.mark.parametrize("reentrant", [False, True])


@REENTRANT
def test_grad_of_arguments_and_parameters(torch, checkpoint, layer, reentrant):
    results = []
    for call in (plain, checkpoint):
        x = inputs(torch)
        y = call(lambda t: layer(t).sin(), x * 2, use_reentrant=reentrant).square().sum() + layer.weight.sum()
        results.append(torch.autograd.grad(y, [x, layer.weight, layer.bias]))
        assert x.grad is None and layer.weight.grad is None and layer.bias.grad is None
    for want, got in zip(*results):
        torch.testing.assert_close(got, want)


@REENTRANT
def test_backward_with_inputs(torch, checkpoint, layer, reentrant):
    x = inputs(torch)
    want = torch.autograd.grad(layer(x).sin().sum(), [layer.weight])[0]
    checkpoint(lambda t: layer(t).sin(), x, use_reentrant=reentrant).sum().backward(inputs=[layer.weight])
    torch.testing.assert_close(layer.weight.grad, want)
    assert x.grad is None and layer.bias.grad is None


@REENTRANT
def test_backward_calls_hooks_once(torch, checkpoint, layer, reentrant):
    x, calls = inputs(torch), []
    layer.weight.register_hook(lambda g: calls.append("hook") or g * 2)
    layer.weight.register_post_accumulate_grad_hook(lambda p: calls.append("accumulated"))
    want = torch.autograd.grad(layer(x).sin().sum(), [x, layer.bias])
    calls.clear()
    checkpoint(lambda t: layer(t).sin(), x, use_reentrant=reentrant).sum().backward()
    assert calls == ["hook", "accumulated"]
    torch.testing.assert_close((x.grad, layer.bias.grad), want)
    without = torch.nn.Linear(3, 3)
    without.load_state_dict(layer.state_dict())
    without(x.detach()).sin().sum().backward()
    torch.testing.assert_close(layer.weight.grad, without.weight.grad * 2)


def test_unused_tensors(torch, checkpoint, layer):
    x, other = inputs(torch), torch.ones(3, requires_grad=True)
    y = checkpoint(lambda t: layer(t), x, use_reentrant=False)
    assert torch.autograd.grad(y.sum(), [other], allow_unused=True, retain_graph=True) == (None,)
    with pytest.raises(RuntimeError, match="not have been used"):
        torch.autograd.grad(y.sum(), [other])


def test_only_parameters_require_grad(torch, checkpoint, layer):
    x = inputs(torch).detach()
    y = checkpoint(lambda t: layer(t).sin(), x, use_reentrant=False)
    want = torch.autograd.grad(layer(x).sin().sum(), [layer.weight])
    torch.testing.assert_close(torch.autograd.grad(y.sum(), [layer.weight]), want)
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad"):
        assert not checkpoint(lambda t: layer(t).sin(), x, use_reentrant=True).requires_grad
    with torch.no_grad():
        assert not checkpoint(lambda t: layer(t).sin(), x, use_reentrant=False).requires_grad
    layer.requires_grad_(False)
    head = torch.nn.Linear(3, 1)
    head(checkpoint(lambda t: layer(t).sin(), x, use_reentrant=False)).sum().backward()  # nothing to do in the function
    torch.testing.assert_close(head.weight.grad, layer(x).sin().sum(0, keepdim=True))


@REENTRANT
def test_second_derivatives(torch, checkpoint, layer, reentrant):
    results = []
    for call in (plain, checkpoint):
        x, w = inputs(torch), torch.full((3,), 0.5, requires_grad=True)
        y = call(lambda t: (layer(t) * w).sin() * t, x * x, use_reentrant=reentrant)
        first = torch.autograd.grad(y.square().sum(), [x, w, layer.weight], create_graph=True)
        penalty = sum(g.square().sum() for g in first)
        second = torch.autograd.grad(penalty, [x, w, layer.weight, layer.bias], retain_graph=True)
        penalty.backward()
        results.append([*first, *second, x.grad, w.grad])
    for want, got in zip(*results):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


def test_backward_that_creates_a_graph(torch, checkpoint, layer):
    results = []
    for call in (plain, checkpoint):
        x = inputs(torch)
        call(lambda t: layer(t).sin(), x, use_reentrant=False).sum().backward(create_graph=True)
        results.append((x.grad, layer.weight.grad, torch.autograd.grad(x.grad.square().sum(), [layer.weight])[0]))
        layer.zero_grad()
    for want, got in zip(*results):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


@REENTRANT
def test_third_derivatives(torch, checkpoint, layer, reentrant):
    results = []
    for call in (plain, checkpoint):
        x, found = inputs(torch), []
        y = call(lambda t: layer(t**3).tanh(), x, use_reentrant=reentrant)
        for _ in range(3):
            (y,) = torch.autograd.grad(y.square().sum(), [x], create_graph=True)
            found.append(y)
        results.append([*found, *torch.autograd.grad(y.sum(), [x, layer.weight, layer.bias])])
    for want, got in zip(*results):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


def test_nested(torch, checkpoint, layer):
    results = []
    for call in (plain, checkpoint):
        x = inputs(torch)
        y = call(lambda t: call(lambda s: layer(s).sin(), t * 2, use_reentrant=False).cos(), x, use_reentrant=False)
        results.append(torch.autograd.grad(y.sum(), [x, layer.weight], create_graph=True))
    for want, got in zip(*results):
        torch.testing.assert_close(got, want)


def test_random_numbers(torch, checkpoint, layer):
    results = []
    for call in (plain, checkpoint):
        torch.manual_seed(5)
        x = inputs(torch)
        y = call(lambda t: torch.nn.functional.dropout(layer(t), 0.5), x, use_reentrant=False)
        results.append([y, *torch.autograd.grad(y.sum(), [x, layer.weight]), torch.rand(2)])
    for want, got in zip(*results):
        torch.testing.assert_close(got, want)


@REENTRANT
def test_used_tensors_with_a_history(torch, checkpoint, reentrant):
    """Also by two checkpoints, neither of which receives them."""
    results = []
    for call in (plain, checkpoint):
        w, x = torch.ones(3, requires_grad=True), inputs(torch)
        root = w.sin().exp()
        y = call(lambda t: t * root, x, use_reentrant=reentrant)
        y = call(lambda t: (t * root).sin(), y, use_reentrant=reentrant).sum()
        (first,) = torch.autograd.grad(y, [w], create_graph=True)
        (first.square().sum() + y).backward()
        results.append((first, w.grad, x.grad))
    for want, got in zip(*results):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


@REENTRANT
def test_changed_arguments_raise(torch, checkpoint, reentrant):
    x = inputs(torch)
    t = x * 2
    y = checkpoint(lambda t: t.sin(), t, use_reentrant=reentrant)
    t.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_inner_gradients(torch, checkpoint, layer):
    """A function that differentiates inside."""
    results = []
    for call in (plain, checkpoint):

        def adapted(t):
            with torch.enable_grad():
                fast = torch.zeros(3, requires_grad=True)
                loss = ((layer(t.detach()) + fast) ** 2).sum()
                (step,) = torch.autograd.grad(loss, [fast])
            return layer(t) - step.detach()

        x = inputs(torch)
        y = call(adapted, x, use_reentrant=False)
        results.append([y, *torch.autograd.grad(y.square().sum(), [x, layer.weight])])
    for want, got in zip(*results):
        torch.testing.assert_close(got, want)


def test_compiled_functions(torch, checkpoint, layer):
    step = torch.compile(lambda t: layer(t).sin())
    results = []
    for call in (plain, checkpoint):
        x = inputs(torch)
        results.append(torch.autograd.grad(call(step, x, use_reentrant=False).sum(), [x, layer.weight]))
    for want, got in zip(*results):
        torch.testing.assert_close(got, want)


@REENTRANT
def test_saved_tensor_hooks(torch, checkpoint, layer, reentrant):
    x = inputs(torch)
    want = torch.autograd.grad(layer(x.exp()).sin().sum(), [x, layer.weight])
    for request in ("grad", "backward"):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
            y = checkpoint(lambda t: layer(t).sin(), x.exp(), use_reentrant=reentrant).sum()
        if request == "grad":
            got = torch.autograd.grad(y, [x, layer.weight])
        else:
            y.backward()
            got = (x.grad, layer.weight.grad)
        torch.testing.assert_close(got, want)


@pytest.mark.parametrize("make", [
    lambda a, b: [a, b], lambda a, b: {"a": a, "b": b}, lambda a, b: (a, (b, None, 3)), lambda a, b: ((a,), [b]),
])  # fmt: skip
def test_results_in_containers(torch, checkpoint, layer, make):
    results = []
    for call in (plain, checkpoint):
        x = inputs(torch)
        value = call(lambda t: make(layer(t).sin(), t * 2), x, use_reentrant=False)
        leaves = torch.utils._pytree.tree_leaves(value)
        first, second = (t for t in leaves if isinstance(t, torch.Tensor))
        results.append((torch.utils._pytree.tree_structure(value), torch.autograd.grad((first * second).sum(), [x, layer.weight])))
    assert results[0][0] == results[1][0]
    torch.testing.assert_close(results[1][1], results[0][1])


def test_modules_with_states(torch, checkpoint):
    torch.manual_seed(1)
    lstm, results = torch.nn.LSTM(3, 2), []
    for call in (plain, checkpoint):
        x = inputs(torch)
        y, (h, c) = call(lstm, x, use_reentrant=False)
        results.append(torch.autograd.grad((y.sum() + (h * c).sum()), [x, *lstm.parameters()]))
    torch.testing.assert_close(results[1], results[0])


@REENTRANT
def test_hooks_are_called_once_per_pass(torch, checkpoint, layer, reentrant):
    """Those of a parameter that two checkpoints use, and of a result of a function."""
    results = []
    for call in (plain, checkpoint):
        calls = []
        handle = layer.weight.register_hook(lambda g: calls.append("weight") or g * 2)
        retained = []

        def function(t):
            y = layer(t)
            if not retained:
                y.register_hook(lambda g: calls.append("result") or g * 3)
                y.retain_grad()
                retained.append(y)
            return y.sin()

        x = inputs(torch)
        y = call(function, call(lambda t: layer(t).cos(), x, use_reentrant=reentrant), use_reentrant=reentrant)
        y.sum().backward()
        results.append((x.grad, layer.weight.grad, retained[0].grad, torch.autograd.grad(layer(x).sum(), [layer.weight])[0]))
        assert calls == ["result", "weight", "weight"]
        layer.zero_grad()
        handle.remove()
    torch.testing.assert_close(results[1], results[0])


@REENTRANT
def test_results_without_a_gradient(torch, checkpoint, reentrant):
    """Parameters that do not contribute have no gradient, so that weight decay leaves them as they are."""
    a, b = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
    first, second = checkpoint(lambda t: (a(t), b(t)), inputs(torch), use_reentrant=reentrant)
    first.sum().backward()
    assert a.weight.grad is not None and b.weight.grad is None


def test_functions_that_only_save(torch, checkpoint):
    class Saves(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            return g * w, g * x

    table = torch.nn.Parameter(torch.ones(4, 3))
    results = []
    for call in (plain, checkpoint):
        x, w = inputs(torch), torch.full((2, 3), 3.0, requires_grad=True)
        y = call(lambda t: Saves.apply(t, w) * torch.nn.functional.embedding(torch.tensor([1, 1]), table), x, use_reentrant=False)
        results.append(torch.autograd.grad(y.sum(), [x, w, table]))
    torch.testing.assert_close(results[1], results[0])


def test_arguments_that_the_function_also_captures(torch, checkpoint):
    results = []
    for call in (plain, checkpoint):
        x = inputs(torch)
        y = call(lambda t: t.sin() * x, x, use_reentrant=False)
        (first,) = torch.autograd.grad(y.sum(), [x], create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), [x])
        call(lambda t: t.sin() * x, x, use_reentrant=False).sum().backward()
        results.append((first, second, x.grad))
    torch.testing.assert_close(results[1], results[0])


def test_results_that_are_captured_tensors(torch, checkpoint):
    results = []
    for call in (plain, checkpoint):
        x, w = inputs(torch), torch.full((3,), 2.0, requires_grad=True)
        for function in (lambda t: (t * w, w), lambda t: (t * 2, w)):
            a, b = call(function, x, use_reentrant=False)
            results.append(torch.autograd.grad((a * b).sum(), [x, w], allow_unused=True))
            a, b = call(function, x, use_reentrant=False)
            (a * b).sum().backward()
            assert w.is_leaf
        results.append((x.grad, w.grad))
    torch.testing.assert_close(results[3:], results[:3])


def test_graphs_that_are_kept(torch, checkpoint, layer):
    x, runs = inputs(torch), []
    want = torch.autograd.grad(layer(x.sin()).sin().sum(), [x, layer.weight])

    def function(t):
        runs.append(1)
        return layer(t.sin()).sin()

    y = checkpoint(function, x, use_reentrant=False).sum()
    for count in (2, 3):
        torch.testing.assert_close(torch.autograd.grad(y, [x, layer.weight], retain_graph=True), want)
        assert len(runs) == count
    torch.testing.assert_close(torch.autograd.grad(y, [x, layer.weight]), want)
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_two_passes_through_parts(torch, checkpoint):
    x = inputs(torch)
    a, b = checkpoint(lambda t: (t.sin(), t.exp()), x, use_reentrant=False)
    a.sum().backward()
    b.sum().backward()
    torch.testing.assert_close(x.grad, x.cos() + x.exp())


@pytest.mark.skipif(IN_PROCESS, reason="reads the memory of an engine in another process")
def test_nothing_is_kept(daemon):
    """The engine's memory after the forward pass, the backward pass, and the end of the graph, in numbers of tensors."""
    script = """
import json, os, teletensor as torch
from teletensor import _C
from teletensor.utils.checkpoint import checkpoint
admin = _C.Admin(os.environ["TELETENSOR_ADDRESS"])
SIZE = 1 << 20

class Saves(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.sin()
        ctx.save_for_backward(x.cos(), y)
        return y

    @staticmethod
    def backward(ctx, g):
        cos, y = ctx.saved_tensors
        return g * cos

def function(t):
    for _ in range(4):
        t = Saves.apply(t.exp().tanh())
    return t

def tensors():
    torch.synchronize()
    return round(sum(int(d["memory"]["allocated"]) for d in json.loads(admin.status())["devices"]) / (4 * SIZE))

x = torch.zeros(SIZE, requires_grad=True)
for run in (lambda: function(x), lambda: checkpoint(function, x, use_reentrant=False), lambda: checkpoint(function, x, use_reentrant=True)):
    y = run()
    counts = [tensors()]
    torch.autograd.grad(y.sum(), [x], retain_graph=True)
    counts.append(tensors())
    del y
    print(*counts, tensors())
"""
    environment = client_environment(TELETENSOR_ADDRESS=daemon.address)
    result = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    plain, *checkpoints = [list(map(int, line.split())) for line in result.stdout.splitlines()]
    assert plain[0] >= 14 and plain[2] == 1  # x, and of each iteration exp, tanh, cos, sin
    assert checkpoints == [[2, 2, 1], [2, 2, 1]]  # x and y, then x


def differing(torch, kind):
    runs = []

    def function(t):
        runs.append(1)
        again = len(runs) > 1
        if kind == "operator":
            return t.cos() if again else t.sin()
        if kind == "size":
            return (torch.cat([t, t]) if again else t).sin().sum()
        if kind == "fewer":
            return t.sin() if again else t.sin().sin()
        return t.sin().sin() if again else t.sin()

    return function


@pytest.mark.parametrize("kind, message", [
    ("operator", "call 1 was sin of .*, and is cos of"), ("size", "call 1 was sin of .*, and is sin of .*4, 3"),
    ("fewer", "it made 2 calls that save tensors, and 1 when it runs again; call 2 was sin"),
])  # fmt: skip
def test_runs_that_differ(torch, checkpoint, kind, message):
    from teletensor.utils.checkpoint import CheckpointError, set_checkpoint_debug_enabled

    x = inputs(torch)
    y = checkpoint(differing(torch, kind), x, use_reentrant=False)
    with pytest.raises(CheckpointError, match=message) as error:
        y.sum().backward()
    assert "first run" not in str(error.value)
    y = checkpoint(differing(torch, kind), x, use_reentrant=False, debug=True)
    with pytest.raises(CheckpointError, match="Calls of the first run that save tensors:\n  1: sin of"):
        y.sum().backward()
    with set_checkpoint_debug_enabled(True):
        y = checkpoint(differing(torch, kind), x, use_reentrant=False)
    with pytest.raises(CheckpointError, match="  1: sin of"):
        y.sum().backward()
    torch.testing.assert_close(torch.autograd.grad(x.sin().sum(), [x])[0], x.cos())  # the session continues


def test_runs_that_may_differ(torch, checkpoint):
    x = inputs(torch)
    checkpoint(differing(torch, "more"), x, use_reentrant=False).sum().backward()  # what is saved is complete
    torch.testing.assert_close(x.grad, x.cos())
    x.grad = None
    y = checkpoint(differing(torch, "operator"), x, use_reentrant=False, determinism_check="none")
    y.sum().backward()  # cos saves the same argument
    torch.testing.assert_close(x.grad, x.cos())
    y = checkpoint(differing(torch, "size"), x, use_reentrant=False, determinism_check="none")
    x.grad = None
    with pytest.raises(RuntimeError, match="expected the function to compute the same tensors"):
        y.backward()
        x.grad.sum().item()
    with pytest.raises(ValueError, match="determinism_check should be one of"):
        checkpoint(torch.sin, x, use_reentrant=False, determinism_check="always")


def test_function_that_fails_when_it_runs_again(torch, checkpoint, layer):
    x, runs = inputs(torch), []

    def function(t):
        y = layer(t.exp()).sin()
        runs.append(1)
        if len(runs) == 2:
            raise KeyError("lost")
        return y.cos()

    y = checkpoint(function, x, use_reentrant=False).sum()
    with pytest.raises(KeyError, match="lost"):
        y.backward(retain_graph=True)
    x.grad = layer.weight.grad = None
    y.backward()
    torch.testing.assert_close(x.grad, torch.autograd.grad(layer(x.exp()).sin().cos().sum(), [x])[0])


class Scaled:
    """A custom Function of two tensors, whose second derivatives go through what it saves."""

    def __new__(cls, torch):
        class Product(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, w):
                y = (x * w).exp()
                ctx.save_for_backward(x, w, y)
                return y

            @staticmethod
            def backward(ctx, g):
                x, w, y = ctx.saved_tensors
                return g * w * y, g * x * y

        return Product


@REENTRANT
@pytest.mark.parametrize("nested", [False, True])
def test_custom_functions(torch, checkpoint, reentrant, nested):
    product, results = Scaled(torch), []
    for call in (plain, checkpoint):
        x, w = inputs(torch), torch.full((2, 3), 0.5, requires_grad=True)

        def function(t):
            return product.apply(t.sin(), w).cos()

        def outer(t):
            return call(function, t * t, use_reentrant=reentrant) * t

        y = call(outer if nested else function, x * 2, use_reentrant=reentrant).sum()
        first = torch.autograd.grad(y, [x, w], create_graph=True)
        second = torch.autograd.grad(sum(g.square().sum() for g in first), [x, w])
        call(outer if nested else function, x, use_reentrant=reentrant).sum().backward()
        results.append([*first, *second, x.grad, w.grad])
    for want, got in zip(*results):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


def test_what_custom_functions_save(torch, checkpoint):
    product = Scaled(torch)
    x, w = inputs(torch), torch.full((2, 3), 0.5, requires_grad=True)
    made = []

    def function(t):
        y = product.apply(t, w)
        made.append(y)
        return y * 1

    y = checkpoint(function, x, use_reentrant=False)
    if (saved := getattr(made[0].grad_fn, "saved_tensors", None)) is not None:  # outside of a pass
        torch.testing.assert_close(saved[2], (x * w).exp())
    y.sum().backward()
    torch.testing.assert_close(w.grad, x * (x * w).exp())


def test_nested_results(torch, checkpoint, layer):
    """Three levels, of which the inner ones' arguments are intermediate results."""
    results = []
    for call in (plain, checkpoint):
        x = inputs(torch)

        def level(t, depth):
            t = layer(t).tanh()
            return call(level, t * 2, depth - 1, use_reentrant=False) + t if depth else t.sin()

        y = call(level, x.exp(), 2, use_reentrant=False).square().sum()
        first = torch.autograd.grad(y, [x, layer.weight], create_graph=True)
        results.append([*first, *torch.autograd.grad(first[1].square().sum() + first[0].sum(), [x, layer.weight, layer.bias])])
    for want, got in zip(*results):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("offload", [False, True])
def test_arguments_within_hooks(torch, checkpoint, layer, offload):
    """Hooks outside of a checkpoint store its arguments, nothing else."""
    x, packed = inputs(torch), []
    want = torch.autograd.grad(layer(x.exp()).sin().sum(), [x, layer.weight])
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t.shape) or t.detach().clone(), lambda t: t)
    t = x.exp()
    with torch.autograd.graph.save_on_cpu() if offload else hooks:
        y = checkpoint(lambda t: layer(t).sin(), t, use_reentrant=False)
    assert packed == ([] if offload else [(2, 3)])
    torch.testing.assert_close(torch.autograd.grad(y.sum(), [x, layer.weight]), want)


def test_hooks_in_the_function(torch, checkpoint):
    x, packed = inputs(torch), []

    def function(t):
        with torch.autograd.graph.saved_tensors_hooks(lambda s: packed.append(1) or s * 1, lambda s: s):
            t = t.sin()
        return t.exp()

    checkpoint(function, x, use_reentrant=False).sum().backward()
    torch.testing.assert_close(x.grad, x.cos() * x.sin().exp())
    assert len(packed) == 2  # also when it runs again, as in PyTorch


def test_passes_in_the_function(torch, checkpoint, layer):
    """Gradients of the function's own intermediate results, recorded."""
    results = []
    for call in (plain, checkpoint):

        def penalized(t):
            y = layer(t.sin()).tanh()
            (g,) = torch.autograd.grad(y.sum(), [t], create_graph=True)
            return y.sum() + g.square().sum()

        x = inputs(torch)
        results.append(torch.autograd.grad(call(penalized, x * 2, use_reentrant=False), [x, layer.weight]))
    for want, got in zip(*results):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


def test_contexts(torch, checkpoint):
    from contextlib import contextmanager

    seen = []

    @contextmanager
    def note(name):
        seen.append(name)
        yield

    x = inputs(torch)
    y = checkpoint(lambda t: t.sin(), x, use_reentrant=False, context_fn=lambda: (note("first"), note("again")))
    assert seen == ["first"]
    torch.testing.assert_close(torch.autograd.grad(y.sum(), [x], create_graph=True)[0], x.cos())
    assert seen == ["first", "again"]


def test_operators_that_write(torch, checkpoint, layer):
    results = []
    for call in (plain, checkpoint):

        def function(t):
            t = layer(t) + 1
            t.mul_(2).sin_()
            u = torch.zeros(2, 3)
            u[0] = t[1]
            return u.exp() + torch.nn.functional.relu(t, inplace=True)

        x = inputs(torch)
        results.append(torch.autograd.grad(call(function, x, use_reentrant=False).sum(), [x, layer.weight]))
    torch.testing.assert_close(results[1], results[0])


@pytest.mark.parametrize("backend", ["teletensor", "eager", "aot_eager"])
def test_backends_in_checkpoints(torch, checkpoint, layer, backend):
    options = {} if backend == "teletensor" else {"backend": backend}
    step = torch.compile(lambda t: layer(t).sin().exp(), **options)
    results = []
    for call in (plain, checkpoint):
        x = inputs(torch)
        call(step, x.cos(), use_reentrant=False).sum().backward()
        results.append((x.grad, layer.weight.grad))
        layer.zero_grad()
    torch.testing.assert_close(results[1], results[0])


def test_threads(torch, checkpoint, layer):
    """A pass in another thread than the first run."""
    import threading

    x = inputs(torch)
    y = checkpoint(lambda t: layer(t).sin(), x, use_reentrant=False).sum()
    thread = threading.Thread(target=y.backward)
    thread.start()
    thread.join()
    torch.testing.assert_close(x.grad, torch.autograd.grad(layer(x).sin().sum(), [x])[0])


def test_objects_are_freed(torch, checkpoint):
    import gc
    import weakref

    class Owner:
        pass

    product, x = Scaled(torch), inputs(torch)
    gc.disable()
    try:
        for create_graph in (False, True, None):
            owner = Owner()
            mark = weakref.ref(owner)
            y = checkpoint(lambda t, o: product.apply(t.sin(), t).exp(), x, owner, use_reentrant=False).sum()
            if create_graph is not None:
                torch.autograd.grad(y, [x], create_graph=create_graph)
            del y, owner
            assert mark() is None
    finally:
        gc.enable()


def test_early_stop(torch, checkpoint):
    """A run ends when all is saved: the counts are PyTorch's."""
    from teletensor.utils.checkpoint import set_checkpoint_early_stop

    counts = []

    def clone(t):
        counts.append(1)
        return t.clone()

    def count(enabled, **options):
        counts.clear()
        x = torch.tensor(1.0, requires_grad=True)
        if enabled is None:
            y = checkpoint(lambda t: clone(t.sin().cos()), x, use_reentrant=False, **options)
        else:
            with set_checkpoint_early_stop(enabled):
                y = checkpoint(lambda t: clone(t.sin().cos()), x, use_reentrant=False, **options)
        y.backward()
        torch.testing.assert_close(x.grad, -x.sin().sin() * x.cos())
        return len(counts)

    assert [count(None), count(None, early_stop=False), count(None, early_stop=True)] == [1, 2, 1]
    assert [count(False), count(True), count(False, early_stop=True), count(True, early_stop=False)] == [2, 1, 2, 1]


@pytest.mark.parametrize("early_stop", [True, False])
def test_derivatives_of_checkpoints_in_any_order(torch, checkpoint, early_stop):
    """grad() and checkpoint() around each other, as in PyTorch's own tests."""

    def c(function):
        return lambda x: checkpoint(function, x, use_reentrant=False, early_stop=early_stop)

    def grad(function):
        def wrapper(x):
            with torch.enable_grad():
                return torch.autograd.grad(function(x), [x], create_graph=True)[0]

        return wrapper

    def f(x):
        return x.sin().exp().sin()

    def g(x):
        a, b = x.sin().exp().sin(), x.sin().exp().sin()
        torch.autograd.grad(a, [x])
        torch.autograd.grad(b, [x])
        return x.sin()

    x = torch.tensor(0.7, requires_grad=True)
    for fn in (f, g):
        for want, *others in (
            (fn, c(fn), c(c(fn))), (grad(fn), grad(c(fn)), grad(c(c(fn)))),
            (grad(grad(fn)), grad(c(grad(fn))), c(grad(grad(c(fn)))), grad(c(grad(c(fn))))),
            (grad(grad(grad(fn))), grad(c(grad(grad(c(fn))))), grad(c(grad(c(grad(c(fn))))))),
        ):  # fmt: skip
            for other in others:
                torch.testing.assert_close(other(x), want(x))


def test_passes_within_a_pass(torch, checkpoint):
    """A hook runs a pass through a part of the function whose other part is being differentiated."""

    def function(t):
        part = t.sin().cos()
        return part, part.sin()

    x = torch.tensor(1.0, requires_grad=True)
    part, y = checkpoint(function, x, use_reentrant=False)
    calls = []
    y.grad_fn.register_hook(lambda *_: calls.append(1) or part.backward(retain_graph=True))
    y.backward(retain_graph=True)
    first = -x.sin().sin() * x.cos()
    torch.testing.assert_close(x.grad, first + x.sin().cos().cos() * first)
    assert calls == [1]


def test_passes_of_threads_through_one_checkpoint(torch, checkpoint, layer):
    """Each runs the function in the autocast of its first run, and none meets what the other has saved."""
    import sys
    import threading

    product, x, errors = Scaled(torch), inputs(torch), []
    with torch.autocast("cpu", torch.bfloat16):
        y = checkpoint(lambda t: product.apply(layer(t).float(), t).sin(), x, use_reentrant=False).sum()
    want = torch.autograd.grad(y, [x, layer.weight], retain_graph=True)

    def passes():
        try:
            for _ in range(20):
                torch.testing.assert_close(torch.autograd.grad(y, [x, layer.weight], retain_graph=True), want)
                assert not torch.is_autocast_enabled("cpu")
        except BaseException as error:  # noqa: BLE001 - reported by the test
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=passes) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not errors


def test_tensors_that_change_after_they_were_saved(torch, checkpoint):
    """In the function: those of custom Functions, and arguments of inner checkpoints. Between the runs: keyword arguments."""
    product, x = Scaled(torch), inputs(torch)

    def saved(t):
        h = t * 2
        y = product.apply(h, t)
        h.add_(1)
        return y + h

    def inner(t):
        h = t * 2
        y = checkpoint(lambda s: s.sin(), h, use_reentrant=False)
        h.add_(1)
        return y + h

    for function, want in ((saved, (2 * x * x).exp() * 4 * x + 2), (inner, 2 * (2 * x).cos() + 2)):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            checkpoint(function, x, use_reentrant=False, early_stop=False).sum().backward()
        x.grad = None
        checkpoint(function, x, use_reentrant=False).sum().backward()  # ends before the change
        torch.testing.assert_close(x.grad, want.detach())
    w = torch.ones(3)
    y = checkpoint(lambda t, w: t * w, x, w=w, use_reentrant=False)
    w.mul_(2)
    with pytest.raises(RuntimeError, match="an argument of a checkpointed function, of size"):
        y.sum().backward()
    z = x * 1
    with pytest.raises(RuntimeError, match="has changed its argument"):
        checkpoint(lambda z: z.mul_(2).sin(), z, use_reentrant=False).sum().backward()


def test_functions_that_receive_no_gradient(torch, checkpoint):
    """A recorded pass calls the backward of Functions that the engine does not reach; they may read what they have saved."""

    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x, y * 2, x

        @staticmethod
        def backward(ctx, a, b, c):
            x, y = ctx.saved_tensors
            return a * x + c * y, b * x

    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    results = []
    for call in (plain, checkpoint):
        x, w = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 4.0], requires_grad=True)
        a, b, c = call(Both.apply, x, w, use_reentrant=False)
        first = torch.autograd.grad((a * 2 + b * 3 + c).sum(), (x, w), create_graph=True)
        results.append((*first, *torch.autograd.grad((first[0] * first[1]).sum(), (x, w), create_graph=True)))
    torch.testing.assert_close(results[1], results[0])
    torch.testing.assert_close(results[1][2:], (torch.tensor([21.0, 36.0]), torch.tensor([3.0, 6.0])))
    (first,) = torch.autograd.grad(Once.apply(x).sum(), x, create_graph=True)
    torch.testing.assert_close(first, x.exp())
    for result in (first.sum(), (first * x).sum()):
        with pytest.raises(RuntimeError, match="marked with @once_differentiable"):
            torch.autograd.grad(result, x, retain_graph=True)
