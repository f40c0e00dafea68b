"""Gradients of tensors that a compiled function has computed, which its own backward pass or hooks need."""

from __future__ import annotations

import pytest

import teletensor as torch
from teletensor._dynamo.exc import Unsupported


def grad_of_a_result(x, p):
    v = x * p
    return torch.autograd.grad(v.sin().sum(), v, allow_unused=True)[0]


def grads_with_options(x, p):
    v = x * p
    return torch.autograd.grad(v.sin().sum(), [v, x], retain_graph=True)[0]


def retained_after_its_use(x, p):
    v = x * p
    loss = v.sin().sum()
    v.retain_grad()
    loss.backward()
    return v.grad


def retained_before_its_use(x, p):
    v = x * p
    v.retain_grad()
    v.sin().sum().backward()
    return v.grad


def backward_to_a_result(x, p):
    v = x * p
    v.sin().sum().backward(inputs=[v])
    return v.grad


def hook_with_an_effect(x, p):
    seen, v = [], x * p
    loss = v.sin().sum()
    v.register_hook(seen.append)
    loss.backward()
    return seen[0]


def hook_that_changes_gradients(x, p):
    v = x * p
    loss = v.sin().sum()
    v.register_hook(lambda g: g * 10)
    loss.backward()
    return p.grad / 10


@pytest.mark.parametrize("is_leaf", [True, False])
@pytest.mark.parametrize(
    "function",
    [
        grad_of_a_result, grads_with_options, retained_after_its_use, retained_before_its_use, backward_to_a_result, hook_with_an_effect,
        hook_that_changes_gradients,
    ],
)  # fmt: skip
def test_gradients_of_computed_tensors(function, is_leaf):
    compiled = torch.compile(function)
    for _ in range(2):
        x, p = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
        torch.testing.assert_close(compiled(x if is_leaf else x * 1, p), torch.ones(2).cos())


def test_the_reason_is_an_error_of_whole_graphs():
    x = torch.ones(2, requires_grad=True) * 1
    with pytest.raises(Unsupported, match="a tensor that the function has computed"):
        torch.compile(grad_of_a_result, fullgraph=True)(x, torch.ones(2))
