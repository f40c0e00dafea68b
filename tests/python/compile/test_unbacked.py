"""Sizes that depend on values of tensors, in compiled functions: item() in a size, nonzero(), masks."""

from __future__ import annotations

import pytest

import teletensor as torch
from teletensor._dynamo.exc import Unsupported
from teletensor._dynamo.utils import counters
from teletensor.utils import _pytree as pytree


@pytest.fixture(autouse=True)
def _captured():
    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
        yield


def made(x, n):
    return torch.zeros(n.item()) + 1


def sliced(x, n):
    k = n.item()
    torch._check_is_size(k)
    torch._check(k <= x.shape[0])
    y = x[:k]
    return y * 2, y.shape[0], y.numel() + 1, y.sum()


def narrowed(x, n):
    return x.narrow(0, 0, n.item()).sum(1) * n.item()


def computed(x, n):
    k = (n * 2).item()
    return torch.ones(k + 1, 3) * k, k, -k, k // 2


def required(x, n):
    k = n.item()
    torch._check(k >= 1)
    return x + 1 if k > 0 and not k < 1 and k != 0 else x


def viewed(x, n):
    return x.view(n.item(), -1)


def of_nonzero(x, n):
    z = x.nonzero()
    return z.shape[0], z * 2, torch.zeros(z.size(0))


def of_masks(x, n):
    z = x[x > 0]
    return z.sum(), z * 2, len(x.masked_select(x > 0)), x[x[:, 0] > 0].sum(0)


def expanded(x, n):
    return x[0].expand(n.item(), 4) + x[1], torch.arange(max(n.item(), 2))


def compared(x, n):
    k = n.item()
    return k > 2, k + 1


def written(x, n):
    y = x.clone()
    k = n.item()
    n.add_(1)
    y[:k] = 0
    return y, torch.zeros(k), n


WHOLE = [made, sliced, narrowed, computed, required, viewed, of_nonzero, of_masks, expanded, compared, written]


def arguments(n):
    return torch.arange(12.0).reshape(3, 4) - n, torch.tensor(n)


def check(got, want):
    for a, b in zip(pytree.tree_leaves(got), pytree.tree_leaves(want), strict=True):
        assert type(a) is type(b)
        if isinstance(b, torch.Tensor):
            torch.testing.assert_close(a, b, rtol=0, atol=0)
        else:
            assert a == b


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("function", WHOLE)
def test_one_graph_for_all_numbers(function, backend):
    compiled = torch.compile(function, backend=backend, fullgraph=True)
    for n in (2, 3, 1, 3):
        check(compiled(*arguments(n)), function(*arguments(n)))
    assert not counters["recompiles"] and counters["stats"]["unique_graphs"] == 1


def decided(x, n):
    return x if n.item() > 2 else x + 1


def counted(x, n):
    for i in range(n.item()):
        x = x + i
    return x


def rank(x, n):
    return x[: n.item()].squeeze().dim()


def parts(x, n):
    return [p * 2 for p in x[: n.item()]]


def size_decides(x, n):
    y = x[: n.item()]
    return y * 2 if y.shape[0] == 2 else y


@pytest.mark.parametrize("function", [decided, counted, rank, parts, size_decides])
def test_decisions_end_the_graph(function):
    compiled = torch.compile(function)
    for n in (2, 1, 3, 0):
        check(compiled(*arguments(n)), function(*arguments(n)))
    torch._dynamo.reset()
    with pytest.raises(Unsupported):
        torch.compile(function, fullgraph=True)(*arguments(2))


def test_gradients():
    def f(x, n):
        return x[: n.item()].square().sum() + x[x > 1].sum()

    compiled = torch.compile(f, fullgraph=True)
    for n in (1, 3):
        a, b = (torch.arange(12.0).reshape(3, 4).requires_grad_() for _ in range(2))
        compiled(a, torch.tensor(n)).backward()
        f(b, torch.tensor(n)).backward()
        torch.testing.assert_close(a.grad, b.grad)


def test_a_check_that_fails_raises():
    compiled = torch.compile(sliced, fullgraph=True)
    compiled(*arguments(2))
    for n in (-1, 4):
        with pytest.raises(RuntimeError, match="Expected cond to be True"):
            compiled(*arguments(n))


def text_of_failure(compiled, n):
    with pytest.raises(RuntimeError) as failure:
        compiled(*arguments(n))
    return str(failure.value)


def test_the_message_of_a_check():
    def f(x, n):
        torch._check(n.item() > 0, lambda: "positive")
        torch._check_is_size(n.item(), lambda: "small", max=3)
        return x[: n.item()]

    compiled = torch.compile(f, fullgraph=True)
    compiled(*arguments(2))
    assert "positive" in text_of_failure(compiled, 0) and "small" in text_of_failure(compiled, 4)

    def g(x, n):
        k = n.item()
        torch._check(k > 0, lambda: f"got {k}")
        return x[:k]

    compiled = torch.compile(g)
    compiled(*arguments(2))
    assert "got -1" in text_of_failure(compiled, -1)


def test_the_graph_of_a_backend():
    graphs = []

    def backend(module, inputs):
        graphs.append(module)
        return module.forward

    check(torch.compile(sliced, backend=backend, fullgraph=True)(*arguments(2)), sliced(*arguments(2)))
    targets = [node.target for node in graphs[0].graph.nodes]
    assert "item" in targets and torch._check in targets
    graphs[0].graph.eliminate_dead_code()
    assert torch._check in [node.target for node in graphs[0].graph.nodes]
