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
        with pytest.raises(RuntimeError, match="not one of its arguments"):
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
