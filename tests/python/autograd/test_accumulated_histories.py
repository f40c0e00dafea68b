"""Recorded gradients that are added to earlier ones depend on what those depend on."""

from __future__ import annotations

import pytest

import teletensor as torch


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


def penalty(w, v):
    """Differentiates a function of w.grad after two recorded passes."""
    gradient = w.grad
    w.grad = v.grad = None
    (gradient**2).sum().backward()


@pytest.mark.parametrize(
    ("second", "of_w", "of_v"),
    [
        (lambda w: w.sum() * 0.1, [9.6, 73.2], [9.6, 146.4]),  # linear: no history of its own
        (lambda w: (w**2).sum(), [35, 160], [21, 240]),  # another history, which lacks v
    ],
)
def test_two_passes(second, of_w, of_v):
    w, v = leaf(1.0, 2.0), leaf(0.5, 0.5)
    (w**3 * v).sum().backward(create_graph=True)
    second(w).backward(create_graph=True)
    penalty(w, v)
    assert w.grad.tolist() == pytest.approx(of_w) and v.grad.tolist() == pytest.approx(of_v)


def test_many_passes():
    w, v = leaf(1.0), leaf(0.5)
    (w * v).sum().backward(create_graph=True)
    for _ in range(50):
        (w**2).sum().backward(create_graph=True)
    penalty(w, v)
    gradient = 0.5 + 50 * 2
    assert w.grad.tolist() == [2 * gradient * 100] and v.grad.tolist() == [2 * gradient]


def test_gradients_that_the_program_sets():
    x, w = leaf(1.0, 2.0), leaf(2.0, 3.0)
    (x.grad,) = torch.autograd.grad((x * w * w).sum(), x, create_graph=True)
    (x**2).sum().backward(create_graph=True)
    gradient, x.grad = x.grad, None
    gradient.sum().backward()
    assert w.grad.tolist() == [4, 6] and x.grad.tolist() == [2, 2]

    x, a = leaf(1.0, 2.0), leaf(2.0, 3.0)
    x.grad = a * 2
    (3 * x).sum().backward(create_graph=True)
    x.grad.sum().backward()
    assert a.grad.tolist() == [2, 2]


def test_hooks_and_functions_of_the_earlier_pass():
    calls = []

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, gradient):
            calls.append("function")
            return 2 * ctx.saved_tensors[0] * gradient

    w, v = leaf(3.0), leaf(0.5)
    v.register_hook(lambda g: calls.append(g.tolist()))
    (Square.apply(w) * v).sum().backward(create_graph=True)
    (w * 1).sum().backward(create_graph=True)
    calls.clear()
    penalty(w, v)
    assert w.grad.tolist() == [8] and v.grad.tolist() == [48]
    assert [48.0] in calls


def test_a_cleared_gradient_has_no_history():
    w = leaf(1.0, 2.0)
    optimizer = torch.optim.SGD([w], lr=0.1)
    (w**3).sum().backward(create_graph=True)
    optimizer.zero_grad(set_to_none=False)
    assert w.grad.tolist() == [0, 0] and not w.grad.requires_grad
