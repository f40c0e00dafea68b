"""SymBool: comparisons of sizes in traced, recorded, exported and compiled functions."""

from __future__ import annotations

import io

import numpy
import pytest

import teletensor as torch
from teletensor.fx.experimental import symbolic_shapes
from teletensor.fx.experimental.proxy_tensor import make_fx
from teletensor.fx.experimental.symbolic_shapes import sym_and, sym_or

trace = torch.compiler.trace


class Module(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def exported(function, example):
    return torch.export.export(Module(function), (example,), dynamic_shapes=({0: torch.export.Dim.AUTO},))


def chosen(x):
    n = x.shape[0]
    condition = (n > 3) & torch.sym_not(n == 7) | (n + 1 < 3)
    return x.new_ones(torch.sym_ite(condition, n, 2 * n)), x * (torch.sym_int(n != 4) + 1)


@pytest.mark.parametrize("n", [2, 3, 4, 6, 7, 12])
def test_choices_by_bools_are_computed_in_every_run(n):
    program = trace(chosen, torch.ones(5, 2))
    for got, expected in zip(program(torch.ones(n, 2)), chosen(torch.ones(n, 2))):
        assert got.shape == expected.shape and torch.equal(got, expected)


def test_types():
    seen = []

    def f(x):
        n = x.shape[0]
        b = n > 3
        seen.append([
            isinstance(v, torch.SymBool)
            for v in (b, torch.sym_not(b), b & (n < 9), True | b, b ^ b, b == b, b and n < 9, n / 2 < 9, n > 2.5, not b)
        ])
        seen.append([isinstance(b, bool), isinstance(n, torch.SymInt), isinstance(n / 2 * 1.5, torch.SymFloat)])
        return x + 1

    trace(f, torch.ones(5, 2))
    assert seen == [[True] * 9 + [False], [False, True, True]]
    seen.clear()
    make_fx(f, tracing_mode="symbolic")(torch.ones(5, 2))
    assert seen[0][:7] == [True] * 7 and seen[1][:2] == [False, True]
    with pytest.raises(TypeError, match="cannot create 'SymBool'"):
        torch.SymBool(None)


@pytest.mark.parametrize(
    ("function", "accepted", "refused", "message"),
    [
        (lambda x: x + 1 if x.shape[0] > 3 else x - 1, [4, 9], [2, 3], r"size\(input 0, 0\) > 3|size\(input 0, 0\) >= 4"),
        (lambda x: x + 1 if (x.shape[0] > 3) & (x.shape[0] < 8) else x, [4, 7], [3, 8], "requires"),
        (lambda x: x + 1 if (x.shape[0] > 3) | (x.shape[0] == 2) else x, [4, 30], [3], "requires"),
        (lambda x: x + (1 if sym_or(x.shape[0] > 3, x.shape[0] < 2) else 0), [4, 30], [2], "requires"),
        (lambda x: x + (1 if sym_and(x.shape[0] > 3, x.shape[0] < 20) else 0), [4, 19], [2, 20], "requires"),
        (lambda x: x.sum(1, keepdim=x.shape[0] > 3), [4, 30], [2], "requires"),
        (lambda x: x + (x.shape[0] > 3), [4, 30], [2], "requires"),
        (lambda x: x + abs(-x.shape[0] / 2), [2, 3, 30], [], ""),
        (lambda x: x + (1 if abs(-x.shape[0] / 2) > 1.6 else 0), [4, 30], [3], ">= 4"),
        (lambda x: x + (1 if x.shape[0] / 2 == 4 else 0), [4, 7], [8, 9], "< 8|<= 7"),
        (lambda x: x.new_ones(abs(3 - x.shape[0])), [2, 4, 9], [], ""),
        (lambda x: x + (1 if x.shape[0] > 3.5 else 0), [4, 30], [3], ">= 4"),
    ],
)
def test_what_python_needs_is_required(function, accepted, refused, message):
    program = trace(function, torch.ones(5, 2))
    for n in accepted:
        assert torch.equal(program(torch.ones(n, 2)), function(torch.ones(n, 2)))
    for n in refused:
        with pytest.raises(ValueError, match=message):
            program(torch.ones(n, 2)).sum().item()


def test_bools_are_results_of_exported_programs():
    def f(x):
        n = x.shape[0]
        return x + 1, n > 3, torch.sym_not(n > 3) | (n == 6)

    program = exported(f, torch.ones(5, 2))
    specs = program.graph_signature.output_specs
    assert [type(s.arg).__name__ for s in specs] == ["TensorArgument", "SymBoolArgument", "SymBoolArgument"]
    stored = io.BytesIO()
    torch.export.save(program, stored)
    stored.seek(0)
    for module in (program.module(), torch.export.load(stored).module()):
        for n in (2, 3, 4, 6):
            assert module(torch.ones(n, 2))[1:] == f(torch.ones(n, 2))[1:]


def test_choices_are_nodes_of_exported_programs():
    def f(x):
        n = x.shape[0]
        return x.new_ones(torch.sym_ite((n > 4) & (n != 9), n, 2 * n))

    program = exported(f, torch.ones(5, 2))
    assert "torch.sym_ite(" in program.graph_module.code
    for n in (2, 4, 5, 9, 100):
        assert program.module()(torch.ones(n, 2)).shape == f(torch.ones(n, 2)).shape


def test_choices_of_large_sizes():
    """Exports record large sizes, too: the choice is a node, not that of the example."""
    program = exported(lambda x: x.new_ones(torch.sym_ite(x.shape[0] < 100000, 4, 5)), torch.ones(5, 2))
    for size, want in ((5, 4), (99999, 4), (100000, 5)):
        assert program.module()(torch.ones(size, 2)).shape == (want,)


@pytest.mark.parametrize(
    ("function", "graphs"),
    [
        (lambda x: (x + 1, torch.sym_not(x.shape[0] > 3)), 2),
        (lambda x: x * torch.sym_ite(x.shape[0] > 3, 2.0, 3.0), 2),
        (lambda x: x.new_ones(torch.sym_max(x.shape[0], 4)), 1),
        (lambda x: x * torch.sym_float(x.shape[0]) * torch.sym_sqrt(x.shape[0]), 1),
        (lambda x: x.new_ones(torch.sym_sum([x.shape[0], 3])), 1),
        (lambda x: x * abs(-x.shape[0] / 2), 1),
        (lambda x: x.new_ones(abs(x.shape[0] - 20)), 1),
        (lambda x: x * -(x.shape[0] / 2), 1),
        (lambda x: x + 1 if x.shape[0] / 2 > 1.6 else x - 1, 2),
        (lambda x: (x + 1, isinstance(x.shape[0] > 3, torch.SymBool) is isinstance(x.shape[0] / 2, torch.SymFloat)), 2),
    ],
)
def test_compiled_functions(function, graphs):
    made = []

    def backend(module, _example):
        made.append(module)
        return module.forward

    compiled = torch.compile(function, dynamic=True, fullgraph=True, backend=backend)
    for n in (5, 6, 9, 2):
        got, expected = compiled(torch.ones(n, 2)), function(torch.ones(n, 2))
        got, expected = ((v,) if isinstance(v, torch.Tensor) else v for v in (got, expected))
        assert torch.equal(got[0], expected[0]) and got[1:] == expected[1:]
    assert len(made) == graphs


def test_questions():
    asked = []

    def f(x):
        n = x.shape[0]
        asked.append([symbolic_shapes.is_symbolic(n > 3), symbolic_shapes.is_concrete_bool(n > 3), symbolic_shapes.has_free_symbols(n > 3)])
        asked.append([symbolic_shapes.guard_bool(n > 3), symbolic_shapes.guard_or_false(n < 3), symbolic_shapes.guard_scalar(n > 4)])
        asked.append([symbolic_shapes.optimization_hint(n > 30), isinstance(sym_and(n > 3, n < 9, True), torch.SymBool)])
        return x + 1

    for record in (lambda: trace(f, torch.ones(5, 2)), lambda: make_fx(f, tracing_mode="symbolic")(torch.ones(5, 2))):
        asked.clear()
        record()
        assert asked[:3] == [[True, False, True], [True, False, True], [False, True]]


def written(x, index):
    y = x.clone()
    y[index] = 5
    return y


@pytest.mark.parametrize(
    "function",
    [
        lambda x, b: x[b] + 0,
        lambda x, b: x[..., b, None] + 0,
        written,
        lambda x, b: written(x, (b, slice(1, None))),
        lambda x, b: written(x > 100, ...).logical_and(torch.tensor(b)),
        lambda x, b: torch.tensor(b),
        lambda x, b: torch.tensor([b, True]),
        lambda x, b: torch.as_tensor([b]),
        lambda x, b: torch.asarray(b),
        lambda x, b: torch.full((2,), b),
        lambda x, b: torch.from_numpy(numpy.array([b])),
        lambda x, b: (x > 3) & b,
        lambda x, b: b ^ (x > 3),
        lambda x, b: torch.ones(3, dtype=torch.bool) + b,
        lambda x, b: (x > 3) == b,
    ],
)
def test_a_bool_of_sizes_is_a_bool_in_indices_and_tensors(function):
    for example in (torch.arange(10.0).reshape(5, 2), torch.arange(4.0).reshape(2, 2)):
        expected = function(example, len(example) > 3)
        got = trace(lambda x: (x + 1, function(x, x.shape[0] > 3).clone()), example)(example)[1]
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape) and torch.equal(got, expected)


@pytest.mark.parametrize("make", [torch.zeros, lambda *sizes: torch.zeros(sizes), lambda *sizes: torch.ones(6).view(*sizes)])
def test_a_bool_of_sizes_is_no_size(make):
    with pytest.raises(TypeError):
        trace(lambda x: x + make(x.shape[0] > 3, 6), torch.ones(5, 6))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.new_ones(torch.sym_max(x.shape[0], 4)),
        lambda x: x * torch.sym_min(x.shape[0], 4),
        lambda x: x.new_ones(abs(x.shape[0] - 20)),
        lambda x: x + torch.sym_int(x.shape[0] > 3),
        lambda x: x + torch.sym_ite(x.shape[0] == 7, 1, x.shape[0]),
        lambda x: x.new_ones(torch.sym_ite((x.shape[0] > 3) == (x.shape[0] != 39), 3, torch.sym_max(7, x.shape[0]))),
        lambda x: x[: torch.sym_max(x.shape[0] - 3, 1)] + 0,
    ],
)
def test_choices_are_nodes_of_recordings(function):
    graph = make_fx(function, tracing_mode="symbolic")(torch.ones(5, 2))
    for n in (2, 3, 4, 5, 7, 9, 20, 25, 39):
        x = torch.arange(2.0 * n).reshape(n, 2)
        got, expected = graph(x), function(x)
        assert got.shape == expected.shape and torch.equal(got, expected), n


def test_bools_are_results_of_programs_in_other_operators():
    def f(x):
        return x + 1, x.shape[0] > 3, x.shape[0] * 2

    program = exported(f, torch.ones(5, 2)).run_decompositions()
    assert [type(s.arg).__name__ for s in program.graph_signature.output_specs] == ["TensorArgument", "SymBoolArgument", "SymIntArgument"]
    for n in (2, 3, 4, 9):
        assert program.module()(torch.ones(n, 2))[1:] == f(torch.ones(n, 2))[1:]
