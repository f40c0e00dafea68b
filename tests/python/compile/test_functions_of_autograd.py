"""autograd.Function in compiled functions: forward is a part of the graph where nothing is recorded."""

from __future__ import annotations

import pytest

import teletensor as torch
from teletensor._dynamo.utils import counters


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        assert not torch.is_grad_enabled()
        return x * x * k

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g * ctx.k, None


class Halves(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x / 2, x.sign()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(output[1])
        ctx.shape = inputs[0].shape

    @staticmethod
    def backward(ctx, g, _):
        return g.expand(ctx.shape) / 2


def square(x):
    return Square.apply(x, 3).relu() + 1


def halves(x):
    a, b = Halves.apply(x)
    return a + b


@pytest.mark.parametrize("function", [square, halves])
@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_gradients_and_inference(function, backend):
    torch._dynamo.reset()
    compiled = torch.compile(function, backend=backend)
    for needs_grad in (False, True, False):
        x, y = (torch.arange(6.0).reshape(2, 3).requires_grad_(needs_grad) for _ in range(2))
        got, want = compiled(x), function(y)
        assert torch.equal(got, want) and got.requires_grad == want.requires_grad == needs_grad
        if needs_grad:
            got.sum().backward(), want.sum().backward()
            assert torch.equal(x.grad, y.grad)
    with torch.no_grad():
        assert torch.equal(compiled(x), function(x)) and torch.is_grad_enabled() is False
    assert not counters["internal"]


def test_inference_is_one_graph():
    torch._dynamo.reset()
    x = torch.randn(2, 3)
    assert torch.equal(torch.compile(square, fullgraph=True)(x), square(x))
    assert counters["engine"] == {"programs": 1}
