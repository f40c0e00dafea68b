"""Hooks and Functions in a backward pass through recorded gradients: those that the pass does not reach are not called.

Expected rows are those of PyTorch 2.15.
"""

import pytest


class _Rows(list):
    def hook(self, name):
        return lambda gradient: self.append((name, gradient.tolist()))


def test_hooks_of_tensors(torch):
    rows = _Rows()
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    z = y.pow(2)
    w = z * 2
    for name, t in (("x", x), ("y", y), ("z", z), ("w", w)):
        t.register_hook(rows.hook(name))
    (gradient,) = torch.autograd.grad(w.sum(), x, create_graph=True)
    assert rows == [("w", [1, 1]), ("z", [2, 2]), ("y", [12, 24]), ("x", [36, 72])]
    rows.clear()
    gradient.sum().backward()
    assert rows == [("y", [12, 12]), ("x", [36, 36])] and x.grad.tolist() == [36, 36]


def test_hooks_of_leaves(torch):
    rows = _Rows()
    x, w = torch.ones(2, requires_grad=True), torch.full((2,), 3.0, requires_grad=True)
    x.register_hook(rows.hook("x"))
    w.register_hook(rows.hook("w"))
    (gradient,) = torch.autograd.grad((x * w).sum(), x, create_graph=True)
    rows.clear()
    gradient.sum().backward()
    assert rows == [("w", [1, 1])]


@pytest.mark.parametrize("materialize", [True, False])
def test_functions(torch, materialize):
    calls = []

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(materialize)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            calls.append(g.tolist())
            return g * 2

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (gradient,) = torch.autograd.grad(Double.apply(Double.apply(x).pow(2)).sum(), x, create_graph=True)
    assert calls == [[1, 1], [8, 16]]
    gradient.sum().backward()
    assert calls[2:] == [[8, 8]] and x.grad.tolist() == [16, 16]


def test_a_function_with_a_result_that_is_not_reached(torch):
    calls = []

    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            calls.append((a.tolist(), b.tolist()))
            return a * 2 + b * 3

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    first, second = Both.apply(x)
    (gradient,) = torch.autograd.grad(first.pow(2).sum() + second.sum(), x, create_graph=True)
    gradient.sum().backward()
    assert calls == [([4, 8], [1, 1]), ([4, 4], [0, 0])] and x.grad.tolist() == [8, 8]


def test_full_backward_hooks_of_modules(torch):
    rows = []
    x = torch.tensor([[1.0, 2.0]], requires_grad=True)
    linear = torch.nn.Linear(2, 2)
    linear.register_full_backward_hook(lambda *_: rows.append("hook"))
    linear.register_full_backward_pre_hook(lambda *_: rows.append("pre hook"))
    (gradient,) = torch.autograd.grad(linear(x).sum(), x, create_graph=True)
    gradient.pow(2).sum().backward()
    assert rows == ["pre hook", "hook"]
    row = linear.weight.sum(0)
    torch.testing.assert_close(linear.weight.grad, (2 * row).expand(2, 2))

    rows.clear()
    layers = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh(), torch.nn.Linear(2, 1))
    for i, layer in enumerate(layers):
        layer.register_full_backward_hook(lambda *_, i=i: rows.append(i))
    out = layers(x)
    (gradient,) = torch.autograd.grad(out.sum(), x, create_graph=True)
    assert rows == [2, 1, 0]
    gradient.pow(2).sum().backward()
    assert rows[3:] == [0]
    rows.clear()
    out = layers(x)
    (gradient,) = torch.autograd.grad(out.sum(), x, create_graph=True)
    (out.sum() + gradient.pow(2).sum()).backward()
    assert rows == [2, 1, 0, 2, 1, 0]


@pytest.mark.parametrize("materialize", [True, False])
def test_gradients_below_a_function_that_is_not_reached(torch, materialize):
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(materialize)
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g

    x, w = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 4.0], requires_grad=True)
    (gradient,) = torch.autograd.grad(Same.apply(x * w).sum(), x, create_graph=True)
    gradient.pow(2).sum().backward()
    assert w.grad.tolist() == [6, 8]
