"""Graphs whose sizes are symbols: make_fx(tracing_mode="symbolic") and aot_function(dynamic=True)."""

from __future__ import annotations

import pytest

# Functions with the text of PyTorch's graph: what a symbolic graph has to contain.
TEXTS = {
    "product": (lambda t, x: x.view(x.shape[0] * x.shape[1]), [(3, 4)], [
        "sym_size_int = torch.ops.aten.sym_size.int(x_1, 0)", "sym_size_int_1 = torch.ops.aten.sym_size.int(x_1, 1)",
        "mul = sym_size_int * sym_size_int_1", "view = torch.ops.aten.view.default(x_1, [mul])",
    ]),
    "inferred": (lambda t, x: t.cat([x, x]).view(-1), [(3, 4)], [
        "cat = torch.ops.aten.cat.default([x_1, x_1])", "view = torch.ops.aten.view.default(cat, [-1])",
    ]),
    "equal_sizes": (lambda t, x, y: x + y, [(3, 4), (3, 4)], ["add = torch.ops.aten.add.Tensor(x_1, y_1)"]),
    "ones_are_constant": (lambda t, x: x.expand(x.shape[0], 7), [(3, 1)], [
        "sym_size_int = torch.ops.aten.sym_size.int(x_1, 0)", "expand = torch.ops.aten.expand.default(x_1, [sym_size_int, 7])",
    ]),
    "floordiv": (lambda t, x: x[: x.size(0) // 2], [(6, 4)], [
        "sym_size_int = torch.ops.aten.sym_size.int(x_1, 0)", "floordiv = sym_size_int // 2",
        "slice_1 = torch.ops.aten.slice.Tensor(x_1, 0, 0, floordiv)",
    ]),
}  # fmt: skip


@pytest.fixture
def symbolic(torch):
    from teletensor.fx.experimental.proxy_tensor import make_fx

    return lambda f: make_fx(f, tracing_mode="symbolic")


@pytest.mark.parametrize("name", TEXTS)
def test_sizes_are_nodes(torch, symbolic, name):
    function, sizes, lines = TEXTS[name]
    module = symbolic(*[(lambda x: function(torch, x)) if len(sizes) == 1 else (lambda x, y: function(torch, x, y))])(
        *(torch.randn(s) for s in sizes)
    )
    found = [line.split(";")[0].strip() for line in module.code.splitlines() if "=" in line]
    assert found == lines
    larger = [torch.randn([n if n == 1 else 2 * n for n in s]) for s in sizes]
    torch.testing.assert_close(module(*larger), function(torch, *larger))


def test_ints_are_inputs(torch, symbolic):
    module = symbolic(lambda x, n: x.new_zeros(n + 1) + x.sum())(torch.ones(3), 5)
    assert " = n_1 + 1" in module.code
    assert module(torch.ones(4), 7).tolist() == [4] * 8


def test_sizes_that_must_be_constant(torch, symbolic):
    weight = torch.randn(5, 4)
    module = symbolic(lambda x: torch.nn.functional.linear(x, weight) * x.shape[1])(torch.randn(3, 4))
    assert list(module.shape_env.var_to_val.values()) == [3]
    x = torch.randn(7, 4)
    torch.testing.assert_close(module(x), x @ weight.t() * 4)
    module = symbolic(lambda x: x * 2 if x.shape[0] > 2 else x)(torch.ones(3, 4))
    assert module.shape_env.format_guards() == " - x_1.size()[0] > 2"
    assert module(torch.ones(5, 6)).sum().item() == 60
    module = symbolic(lambda x, n: sum(x[i] for i in range(x.shape[0])) * (n if n < 4 else n.bit_length()))(torch.ones(3, 4), 5)
    assert {" - x_1.size()[0] == 3", " - n_1 == 5"} <= set(module.shape_env.format_guards().splitlines())


def test_gradients_of_many_sizes(torch, symbolic):
    def f(x, w):
        return torch.autograd.grad((x @ w).sigmoid().mean(), w)

    w = torch.randn(4, 5, requires_grad=True)
    module = symbolic(f)(torch.randn(3, 4), w)
    x, v = torch.randn(6, 2), torch.randn(2, 9, requires_grad=True)
    torch.testing.assert_close(module(x, v), f(x, v))


class Collector:
    def __init__(self):
        self.modules = []

    def __call__(self, module, _inputs):
        self.modules.append(module)
        return module


@pytest.mark.parametrize("partition", ["default_partition", "min_cut_rematerialization_partition"])
def test_function_is_compiled_once_for_many_sizes(torch, partition):
    from teletensor._functorch import aot_autograd, partitioners

    def f(x, w):
        return torch.softmax(x @ w, -1).reshape(-1, 2).sin().sum(0)

    graphs = Collector()
    compiled = aot_autograd.aot_function(f, graphs, dynamic=True, partition_fn=getattr(partitioners, partition))
    for rows, columns in ((4, 6), (8, 10), (3, 4)):
        x, w = torch.randn(rows, 5), torch.randn(5, columns, requires_grad=True)
        result, expected = compiled(x, w), f(x, w)
        torch.testing.assert_close(result, expected)
        cotangent = torch.randn(2)
        torch.testing.assert_close(torch.autograd.grad(result, w, cotangent), torch.autograd.grad(expected, w, cotangent))
    assert len(graphs.modules) == 2
    compiled(torch.randn(1, 5), w)  # 1 is a constant in a graph of its own
    assert len(graphs.modules) == 4


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * 2 if x.shape[0] < 50 else x * 3,
        lambda x: x * 3 if x.shape[0] == x.shape[1] else x * 5,
        lambda x: x[: min(x.shape[0], 20)] * 2,
        lambda x: x * x.shape[0].bit_length(),
    ],
)
def test_comparisons_of_sizes_choose_the_graph(torch, f):
    from teletensor._functorch.aot_autograd import aot_function

    graphs = Collector()
    compiled = aot_function(f, graphs, dynamic=True)
    for sizes in ((5, 3), (6, 3), (3, 3), (51, 3), (100, 4), (7, 3)):
        x = torch.randn(sizes, requires_grad=True)
        result, expected = compiled(x), f(x)
        torch.testing.assert_close(result, expected)
        torch.testing.assert_close(torch.autograd.grad(result.sum(), x), torch.autograd.grad(expected.sum(), x))


def test_writes_stay_in_inference_graphs(torch):
    from teletensor._functorch.aot_autograd import aot_function

    def f(x, state):
        state.add_(x.sum())
        return x * state

    graphs = Collector()
    compiled = aot_function(f, graphs, keep_inference_input_mutations=True)
    x, state, expected = torch.ones(3), torch.zeros(3), torch.zeros(3)
    torch.testing.assert_close(compiled(x, state), f(x, expected))
    torch.testing.assert_close(state, expected)
    assert any(str(n.target) == "aten.copy_.default" for n in graphs.modules[0].graph.nodes)


def test_functions_are_called_once(torch):
    """By make_fx and by export, whatever they decide by sizes; decompositions once per node."""
    from teletensor.fx.experimental.proxy_tensor import make_fx

    calls = []

    class Module(torch.nn.Module):
        def forward(self, x):
            calls.append(x.shape[0])
            y = x[50:100] * x.shape[0] if x.shape[0] > 3 else x
            return torch.ones(y.shape[0]), x.view(-1, 2).sum(0), x.split(1000)[0]

    def sum_of(*args):
        calls.append("sum")
        return NotImplemented

    make_fx(Module(), tracing_mode="symbolic")(torch.ones(8))
    assert len(calls) == 1
    dim = torch.export.Dim.AUTO
    program = torch.export.export(Module(), (torch.ones(8),), dynamic_shapes=({0: dim},))
    assert len(calls) == 2
    program.run_decompositions({torch.ops.aten.sum.dim_IntList: sum_of})
    assert calls[2:] == ["sum"]


def test_sizes_of_graphs_follow_from_expressions(torch):
    """Two sizes with one value in the example, and in most others, are not taken for one."""
    from teletensor.fx.experimental.proxy_tensor import make_fx

    def f(x):
        a, b = x[50:100], x[100:150]
        return torch.ones(b.shape[0]), (x * 2 if a.shape[0] == b.shape[0] else x + 1)

    graph = make_fx(f, tracing_mode="symbolic")(torch.ones(8))
    (guard,) = graph.shape_env.guards
    functions = {"sym_min": min}
    for n in (2, 8, 49, 50, 51, 99, 100, 101, 120, 149, 150, 151, 10**6):
        x = torch.ones(n)
        if eval(guard, {"x_1": x, **functions}):  # noqa: S307
            for got, want in zip(graph(x), f(x)):
                torch.testing.assert_close(got, want)
        else:
            assert 50 < n < 150
