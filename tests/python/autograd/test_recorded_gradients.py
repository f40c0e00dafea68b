"""On which tensors recorded gradients depend: `.grad` that stays None, and gradients that do not require grad."""

from __future__ import annotations

import pytest


def penalty(torch, *layers):
    """The model after a backward pass of a gradient penalty alone."""
    model, x = torch.nn.Sequential(*layers), torch.randn(3, 4, requires_grad=True)
    (gradient,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    gradient.square().sum().backward()
    return [p.grad is None for p in model.parameters()]


@pytest.mark.parametrize(
    ("name", "missing"), [("Tanh", [3]), ("ReLU", [3]), ("GELU", [3]), ("Softplus", [3]), ("Identity", [1, 3]), ("Dropout", [1, 3])]
)
def test_parameters_that_the_penalty_does_not_depend_on(torch, name, missing):
    """As in PyTorch: the last bias, and without a nonlinear layer also the first one."""
    layers = torch.nn.Linear(4, 4), getattr(torch.nn, name)(), torch.nn.Linear(4, 1)
    assert [i for i, is_none in enumerate(penalty(torch, *layers)) if is_none] == missing


def test_weight_decay_skips_them(torch):
    last = torch.nn.Linear(4, 1)
    model, x = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), last), torch.randn(3, 4, requires_grad=True)
    optimizer, before = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.5), last.bias.detach().clone()
    (gradient,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    gradient.square().sum().backward()
    optimizer.step()
    assert torch.equal(last.bias, before)


def test_layers_with_channels(torch):
    nn = torch.nn
    layers = nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Conv2d(3, 2, 3), nn.BatchNorm2d(2), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(8, 1)
    model, x = nn.Sequential(*layers), torch.randn(2, 2, 8, 8, requires_grad=True)
    (gradient,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    gradient.square().sum().backward()
    assert [name for name, p in model.named_parameters() if p.grad is None] == ["6.bias"]


def test_constant_gradients(torch):
    """They do not require grad."""
    x = torch.ones(3, requires_grad=True)
    for value in (x.sum(), (x * 2).sum(), x.reshape(1, 3).mean(), torch.cat([x, x]).sum(), torch.ones(2, 3).mv(x).sum()):
        (gradient,) = torch.autograd.grad(value, x, create_graph=True)
        assert not gradient.requires_grad
        with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad"):
            torch.autograd.grad(gradient.sum(), x)
    (gradient,) = torch.autograd.grad(x.relu().sum(), x, create_graph=True)
    assert torch.autograd.grad(gradient.sum(), x)[0].tolist() == [0, 0, 0]


def test_function_that_saves_an_intermediate_result(torch):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.save_for_backward(y)
            return y * y

        @staticmethod
        def backward(ctx, gradient):
            (y,) = ctx.saved_tensors
            return gradient * 4 * y

    x = torch.ones(3, requires_grad=True)
    (gradient,) = torch.autograd.grad(Square.apply(x).sum(), x, create_graph=True)
    assert not gradient.requires_grad
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad"):
        torch.autograd.grad(gradient.sum(), x)
    (gradient,) = torch.autograd.grad(Square.apply(x).square().sum(), x, create_graph=True)
    assert gradient.requires_grad


def test_pass_of_some_inputs(torch):
    """A pass computes the gradients on the way to its inputs only."""
    x, w, v = (torch.ones(3, requires_grad=True) for _ in range(3))
    value = (x * w).sum() + v.square().sum()
    (gradient,) = torch.autograd.grad(value, x, create_graph=True)
    gradient.sum().backward()
    assert w.grad.tolist() == [1, 1, 1] and x.grad is None and v.grad is None
