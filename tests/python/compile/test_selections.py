"""x[i] with an integer in a tensor: in eager code a view of x, and in a graph a copy, so that writes decide what is compiled."""

from __future__ import annotations

import pytest

import teletensor as torch


def write(x, i):
    x[i].add_(1)
    return x * 1


def augment(x, i):
    x[i] += 1
    x[i, i] *= 3
    return x * 1


def read_after_a_write(x, i):
    y = x[i]
    x.mul_(2)
    return y + 1


def write_in_a_view(x, i):
    y = x[:, i][1:]
    y.zero_()
    return x * 1


def store(x, i):
    x[i] = x[i] * 2
    return x + 0


def read_before_a_write(x, i):
    y = x[i] + 1
    x[i] = 5
    return x * y


def read_after_a_break(x, i):
    y = x[i]
    torch._dynamo.graph_break()
    y.add_(1)
    return x * 1


def read_beside_a_tensor(x, i):
    return x.unflatten(1, (2, 2))[i, :, torch.tensor([0, 1, 1])] + 1


def write_beside_a_tensor(x, i):
    y = x.unflatten(1, (2, 2)) * 1
    y[i, :, torch.tensor([1, 0])] = torch.tensor([[10.0, 20.0], [30.0, 40.0]])
    return y * 1


def write_beside_a_mask(x, i):
    y = x.unflatten(1, (2, 2)) * 1
    y[i, :, torch.tensor([True, True])] = torch.tensor([[10.0, 20.0], [30.0, 40.0]])
    return y * 1


def return_after_a_write(x, i):
    y = x[i]
    x[1] = 100
    return y


def read_detached_after_a_write(x, i):
    y = x[i].detach()[1:]
    x[1] = 7
    return y * 1 + x.sum()


def read_by_strides(x, i):
    y = x[:, i]
    return y.as_strided((2,), (1,)) * y.stride()[0]


FUNCTIONS = {f.__name__: f for f in (write, augment, read_after_a_write, write_in_a_view, store, read_before_a_write, read_after_a_break,
                                     read_beside_a_tensor, write_beside_a_tensor, write_beside_a_mask, return_after_a_write,
                                     read_detached_after_a_write, read_by_strides)}  # fmt: skip
WHOLE = ("augment", "store", "read_before_a_write")  # are one graph


@pytest.mark.parametrize("backend", ["inductor", "eager"])
@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_equals_eager(name, requires_grad, backend):
    function, found = FUNCTIONS[name], []
    for call in (function, torch.compile(function, backend=backend)):
        for at in (1, 2):
            leaf = torch.arange(12.0).reshape(3, 4).requires_grad_(requires_grad)
            x = leaf * 1
            y = call(x, torch.tensor(at))
            if requires_grad:
                y.sum().backward()
            found.append((y.tolist(), x.tolist(), leaf.grad.tolist() if requires_grad else None))
    assert found[:2] == found[2:]
    torch._dynamo.reset()


@pytest.mark.parametrize("name", WHOLE)
def test_common_forms_are_one_graph(name):
    explained = torch._dynamo.explain(FUNCTIONS[name])(torch.ones(3, 4), torch.tensor(1))
    assert explained.graph_count == 1 and explained.graph_break_count == 0


def test_results_that_are_selections():
    """As a result of a compiled function, x[i] is a copy: docs/compile.md."""
    x = torch.zeros(3, 4)
    y = torch.compile(lambda x, i: x[i])(x, torch.tensor(1))
    y.add_(1)
    assert y.tolist() == [1.0] * 4 and x.sum().item() == 0
