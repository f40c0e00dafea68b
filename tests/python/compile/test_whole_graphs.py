"""Numbers and sizes that depend on values in graphs of fullgraph=True, which captures them whatever the settings are, as in PyTorch."""

from __future__ import annotations

import contextlib

import pytest

import teletensor as torch
from teletensor._dynamo.exc import Unsupported

from . import asserts

F = torch.nn.functional
X = [[1.0, 0.0, 2.0], [0.0, 0.0, 3.0]]
V = [3, 1, 1, 2]


@pytest.fixture(autouse=True)
def _begin():
    torch._dynamo.reset()


def same(got, want):
    assert type(got) is type(want)
    if isinstance(want, torch.Tensor):
        assert got.dtype == want.dtype
        torch.testing.assert_close(got, want, rtol=0, atol=0)
    elif isinstance(want, (tuple, list)):
        for a, b in zip(got, want, strict=True):
            same(a, b)
    else:
        assert got == want


def set_by_mask(x, v):
    y = x.clone()
    y[y > 1] = 0
    return y, y[v[:2] > 1]


FUNCTIONS = [
    lambda x, v: torch.nonzero(x), lambda x, v: torch.nonzero(x, as_tuple=True), lambda x, v: x.nonzero(as_tuple=True),
    lambda x, v: torch.where(x > 0), lambda x, v: torch.argwhere(x), lambda x, v: torch.masked_select(x, x > 0) * 2,
    lambda x, v: x[x > 0].sum(), lambda x, v: x[x.sum(1) > 3], lambda x, v: x[:, x.sum(0) > 1], lambda x, v: x[x.sum(1) > 3, 0],
    lambda x, v: x[x.sum(1) > 3, None, :], lambda x, v: torch.bincount(v, minlength=6), lambda x, v: v.bincount(),
    lambda x, v: torch.unique(v), lambda x, v: torch.unique(v, return_inverse=True, return_counts=True),
    lambda x, v: torch.unique_consecutive(v), lambda x, v: v.unique(), lambda x, v: x.sum().item(), lambda x, v: int(v[0]),
    lambda x, v: float(x.sum()), lambda x, v: v.tolist(),
    lambda x, v: x[:, :2].tolist(), lambda x, v: v[0].tolist(), lambda x, v: torch.zeros(v[0].item()), lambda x, v: x[: v[1].item()],
    lambda x, v: torch.arange(v.max().item()), lambda x, v: torch.zeros(int(v.max()) + 1).scatter_add_(0, v, torch.ones(4)),
    lambda x, v: torch.repeat_interleave(v, v), lambda x, v: x.repeat_interleave(v[:3], dim=1), lambda x, v: len(v.nonzero()),
    lambda x, v: x[x > 0].shape[0], lambda x, v: x / x.sum().item(), lambda x, v: (x > 0).any().item(),
    lambda x, v: x > x.mean().item(), lambda x, v: torch.where(x.mean().item() < x, x, 0.0),
    lambda x, v: F.pad(x, (0, v[1].item())), lambda x, v: (v == 1).nonzero().squeeze(1), lambda x, v: x.nonzero().unbind(1),
    lambda x, v: torch.cat([x[x > 0], x[x <= 0]]), lambda x, v: x[x.sum(1) > 0].reshape(-1, 3).sum(0), set_by_mask,
    lambda x, v: x.new_zeros(v.max().item() + 1, 3).index_add(0, v[:2], x), lambda x, v: F.linear(x[x.sum(1) > 3], torch.ones(4, 3)),
]  # fmt: skip


@pytest.mark.parametrize("index", range(len(FUNCTIONS)))
def test_values(index):
    function = FUNCTIONS[index]
    compiled = torch.compile(function, fullgraph=True)
    x, v = torch.tensor(X), torch.tensor(V)
    arguments = [(x, v), (x, v), (x.flip(0) + torch.tensor([[0.0, 1.0, 0.0]]), v[[1, 2, 0, 3]]), (x * 2, v)]
    for pair in arguments:
        same(compiled(*pair), function(*pair))


class Experts(torch.nn.Module):
    """A layer of experts, each of which receives the rows that select it."""

    def __init__(self):
        super().__init__()
        self.gate = torch.nn.Linear(4, 3)
        self.experts = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        weights, selected = torch.topk(self.gate(x).softmax(1), 2)
        out = torch.zeros_like(x)
        mask = F.one_hot(selected, 3).permute(2, 1, 0)
        for i, expert in enumerate(self.experts):
            index, rows = torch.where(mask[i])
            out.index_add_(0, rows, expert(x[None, rows].reshape(-1, 4)) * weights[rows, index, None])
        return out


def test_experts_and_their_gradients():
    torch.manual_seed(0)
    model = Experts()
    compiled = torch.compile(model, fullgraph=True)
    for rows in (5, 7, 5):
        x = torch.randn(rows, 4)
        want = model(x)
        grads = torch.autograd.grad(want.square().sum(), [model.gate.weight, *model.experts.parameters()])
        got = compiled(x)
        torch.testing.assert_close(got, want)
        for a, b in zip(torch.autograd.grad(got.square().sum(), [model.gate.weight, *model.experts.parameters()]), grads, strict=True):
            torch.testing.assert_close(a, b)


@pytest.mark.parametrize("function", [
    lambda x: x + 1 if x.sum().item() > 0 else x, lambda x: x + 1 if x[x > 0].numel() > 2 else x,
    lambda x: [x for _ in range(int(x.sum()))],
])  # fmt: skip
def test_decisions_by_values_raise(function):
    with pytest.raises(Unsupported):
        torch.compile(function, fullgraph=True)(torch.tensor(X))
    same(torch.compile(function)(torch.tensor(X)), function(torch.tensor(X)))


@pytest.mark.parametrize("f", [asserts.of_values, asserts.without_gradients])
def test_assert_statements(f):
    compiled = torch.compile(f, fullgraph=True)
    x = torch.tensor(X)
    same(compiled(x), f(x))
    for function in (f, compiled):
        with pytest.raises(AssertionError, match="^negative$"):
            function(-x)
        with pytest.raises(AssertionError, match="^negative$"):
            function(x * torch.nan)
        assert torch.is_grad_enabled()
    same(compiled(x), f(x))
    with pytest.raises(Unsupported):
        torch.compile(asserts.of_values_with_sizes, fullgraph=True)(x)
    with pytest.raises(AssertionError, match="^negative, of .*2, 3"):
        torch.compile(asserts.of_values_with_sizes)(-x)


def test_without_fullgraph_the_graph_ends():
    counts = torch._dynamo.explain(lambda x: x[x > 0] * 2)(torch.tensor(X))
    assert counts.graph_break_count == 1


class Inner(torch.nn.Module):
    """A layer whose graph ends."""

    def forward(self, x):
        return x * len(str(x))


def test_the_line_of_a_break_is_that_of_the_inner_function():
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), Inner())
    line = Inner.forward.__code__.co_firstlineno + 1
    with pytest.raises(Unsupported, match=rf"test_whole_graphs.py:{line} in forward"):
        torch.compile(model, fullgraph=True)(torch.tensor(X))
    with pytest.raises(Unsupported, match="more than one value"):
        torch.compile(lambda x: x if x else 2, fullgraph=True)(torch.tensor(X))


def test_programs_have_the_names_of_functions_and_classes():
    def doubled(x):
        return x * 2 + 1

    function, model = torch.compile(doubled), torch.compile(torch.nn.Sequential(torch.nn.Linear(3, 3)))
    other = torch.nn.ReLU()
    other.compile()
    function(torch.ones(4)), model(torch.ones(3)), other(torch.ones(5))
    names = [each.name.rpartition(".")[2] for each in torch.compiler.stats()[-3:]]
    assert names == ["doubled", "Sequential", "ReLU"]


def same_or_unsupported(function, *args):
    """Compares with the function itself; a whole graph may be refused."""
    want = function(*args)
    with contextlib.suppress(Unsupported):
        same(torch.compile(function, fullgraph=True)(*args), want)
    torch._dynamo.reset()
    same(torch.compile(function)(*args), want)


def count(x):
    return (x > 0).sum().item()


def out_of(function):
    def f(x):
        z = torch.empty(0)
        function(x, z)
        return z.sum() / z.numel()

    return f


def of_rows(method, *args):
    def f(x):
        y = x.nonzero()
        getattr(y, method)(*args)
        return y.shape, y.dim(), len(y.unbind(-1))

    return f


def matched(x):
    match (x > 100).any().item():
        case True:
            return x * 2
        case _:
            return x * 3


# Each function would have other results if the capture took numbers that depend on values for those of its examples.
OF_VALUES = [
    out_of(lambda x, z: torch.mul(x[x > 0], 2, out=z)), out_of(lambda x, z: torch.add(x[x > 0], 2, out=z)),
    out_of(lambda x, z: torch.cat([x[x > 0], x[x > 0]], out=z)), out_of(lambda x, z: torch.stack([x[x > 0]], out=z)),
    out_of(lambda x, z: torch.sort(x[x > 0], out=(z, torch.empty(0, dtype=torch.int64)))),
    out_of(lambda x, z: torch.arange(count(x), out=z)), out_of(lambda x, z: torch.ones(count(x), out=z)),
    *(of_rows(*a) for a in (("t_",), ("transpose_", 0, 1), ("swapdims_", 0, 1), ("swapaxes_", 0, 1), ("unsqueeze_", 0))),
    lambda x: x * 2 if (x > 100).any().item() is False else x * 3, lambda x: x * 2 if (x > 0).any().item() is True else x * 3,
    lambda x: x * 2 if (x > 0).any().item() is None else x * 3, matched, lambda x: (count(x) > 2) is True,
    lambda x: isinstance(x.abs().to(torch.uint8).max().item(), bool), lambda x: type(x.to(torch.int8).max().item()),
    lambda x: isinstance(x.max().item() > 1, bool), lambda x: isinstance((x > 1).any().item(), bool),
    lambda x: torch.ones(1, 2, 2).flatten(0, count(x) - 2).dim(), lambda x: torch.flatten(torch.ones(1, 2, 2), end_dim=count(x) - 2).shape,
    lambda x: torch.tensordot(torch.ones(2, 2, 2, 2), torch.ones(2, 2, 2, 2), dims=count(x)).shape,
    lambda x: torch.tensordot(torch.ones(2, 2, 2, 2), torch.ones(2, 2, 2, 2), count(x)).dim(),
    lambda x: x * 2 if (x > 0).any().item() is (x > 2).any().item() else x * 3, out_of(lambda x, z: torch.masked_select(x, x > 0, out=z)),
    lambda x: torch.nonzero(x, out=torch.empty(0, dtype=torch.int64)).shape,
    lambda x: torch.sum(x[x > 0], 0, keepdim=True, out=torch.ones(1)),
    lambda x: torch.ones(2, 3).unsqueeze_(count(x) - 2).shape, lambda x: x[x > 0].reshape(1, -1).flatten(),
]  # fmt: skip


@pytest.mark.parametrize("index", range(len(OF_VALUES)))
def test_results_that_depend_on_values(index):
    same_or_unsupported(OF_VALUES[index], torch.tensor([1.0, -2.0, 3.0, 1.0]))


def test_large_unsigned_numbers_in_arithmetic():
    large = torch.tensor([2**63 + 2048], dtype=torch.uint64)
    same_or_unsupported(lambda x: x * large.item(), torch.ones(3))


@pytest.mark.parametrize("function", asserts.CAUGHT)
def test_assert_statements_that_are_caught_or_follow_effects(function):
    for x in (torch.tensor([1.0, 2.0]), torch.tensor([-1.0, 2.0])):
        found = []
        for f in (function, torch.compile(function), torch.compile(function, fullgraph=True)):
            asserts.log.clear()
            try:
                result = f(x).tolist()
            except AssertionError:
                result = "raised"
            except Unsupported:
                continue
            found.append((result, list(asserts.log)))
        assert all(each == found[0] for each in found)


def test_assert_statements_are_no_dead_code():
    graphs = []

    def backend(module, _inputs):
        module.graph.eliminate_dead_code()
        module.recompile()
        graphs.append(module)
        return module.forward

    compiled = torch.compile(asserts.of_values, fullgraph=True, backend=backend)
    compiled(torch.tensor(X))
    with pytest.raises(AssertionError):
        compiled(-torch.tensor(X))
    assert len(graphs) == 1


def test_statistics_of_functions_with_unusual_names():
    def doubled(x):
        return x * 2 + 1

    doubled.__code__ = doubled.__code__.replace(co_qualname="\udc80")
    before = len(torch.compiler.stats())
    torch.compile(doubled)(torch.ones(3))
    assert str(torch.compiler.stats()[before:]).encode()
    assert torch.compiler.stats()[-1].name.endswith("\\udc80")
