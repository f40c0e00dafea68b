"""torch.utils.checkpoint: gradients, whichever way they are requested, are those of the function without it."""

from __future__ import annotations

import pytest


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


def test_third_derivatives_raise(torch, checkpoint):
    x = inputs(torch)
    y = checkpoint(lambda t: t**4, x, use_reentrant=False).sum()
    (first,) = torch.autograd.grad(y, [x], create_graph=True)
    with pytest.raises(NotImplementedError, match="third derivatives"):
        torch.autograd.grad(first.sum(), [x], create_graph=True)[0].sum().item()


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


def test_used_tensors_with_a_history(torch, checkpoint):
    w, x = torch.ones(3, requires_grad=True), inputs(torch)
    root = w.sin().exp()
    checkpoint(lambda t: t * root, x, use_reentrant=False).sum().backward()
    torch.testing.assert_close(w.grad, x.detach().sum(0) * w.cos() * w.sin().exp())
    torch.testing.assert_close(x.grad, w.sin().exp().expand(2, 3))
    root = w.sin().exp()
    y = checkpoint(lambda t: t * root, x, use_reentrant=False).sum()
    for allow_unused in (False, True):
        with pytest.raises(RuntimeError, match="need tensors with a history as arguments"):
            torch.autograd.grad(y, [w], allow_unused=allow_unused, retain_graph=True)[0].sum().item()
    y = checkpoint(lambda t, r: t * r, x, w.sin().exp(), use_reentrant=False)
    torch.testing.assert_close(torch.autograd.grad(y.sum(), [w])[0], x.detach().sum(0) * w.cos() * w.sin().exp())


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


def test_hooks_of_parameters(torch, checkpoint, layer):
    """A pass that selects tensors would call them in the function's pass and in the outer one."""
    layer.weight.register_hook(lambda g: g * 2)
    y = checkpoint(lambda t: layer(t).sin(), inputs(torch), use_reentrant=False).sum()
    with pytest.raises(NotImplementedError, match="hooks would be called twice"):
        torch.autograd.grad(y, [layer.bias])[0].sum().item()


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


def test_noted_tensors(torch):
    """Those from outside, once: results of the function are not kept alive."""
    from teletensor import _C

    x, w = inputs(torch), torch.ones(3, requires_grad=True)

    def deep(t):
        for _ in range(5):
            t = t * w + 1
        return t

    result, used = _C.call_noting_tensors(deep, x * 2)
    assert [t.shape for t in used] == [(2, 3), (3,)] and not used[0].is_leaf and used[1].is_leaf
    with pytest.raises(ZeroDivisionError):
        _C.call_noting_tensors(lambda t: t / 1 // (1 // 0), x)
    (outer, inner), used = _C.call_noting_tensors(lambda t: (t * 2, _C.call_noting_tensors(lambda: w + 1)), x)
    assert len(used) == 2 and len(inner[1]) == 1
