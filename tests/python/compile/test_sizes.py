"""Compiled functions that are called with other sizes and ints: the number of graphs, results, gradients and marks."""

from __future__ import annotations

import json
import pathlib

import pytest

import teletensor as torch
from teletensor._dynamo import lookup_backend
from teletensor._dynamo.exc import Unsupported
from teletensor._dynamo.utils import counters
from teletensor.fx.experimental.symbolic_shapes import ConstraintViolationError

from . import size_rows

PEER = json.loads((pathlib.Path(__file__).parent / "sizes.json").read_text())


class Counting:
    """A backend that counts graphs."""

    def __init__(self, name: str) -> None:
        self.inner, self.graphs = lookup_backend(name), []

    def __call__(self, module, inputs):
        self.graphs.append(module)
        return self.inner(module, inputs)


def graphs_after_calls(name: str, backend: str) -> list[int]:
    function, calls, options = size_rows.ROWS[name]
    torch._dynamo.reset()
    counting, counts = Counting(backend), []
    compiled = torch.compile(function, backend=counting, **options)
    for call in calls:
        args, others = ([a.requires_grad_() if isinstance(a, torch.Tensor) else a for a in size_rows.arguments(call)] for _ in range(2))
        got, want = compiled(*args), function(*others)
        torch.testing.assert_close(got, want)
        first = [g[0] if isinstance(g, (tuple, list)) else g for g in (got, want)]
        if first[1].requires_grad:
            for result in first:
                result.double().sum().backward()
            for a, b in zip(args, others):
                if isinstance(a, torch.Tensor):
                    torch.testing.assert_close(a.grad, b.grad)
        counts.append(len(counting.graphs))
    assert not counters["internal"]
    return counts


# PyTorch makes one graph for each index beyond a size that it has compared, and gives up the function of divmod.
FEWER, MORE = {"stack_and_index": [1, 2, 2]}, {"negative_and_divmod": [1, 2, 2]}


@pytest.mark.parametrize("name", size_rows.ROWS)
def test_graphs(name):
    assert graphs_after_calls(name, "eager") == {**PEER, **FEWER, **MORE}[name]


@pytest.mark.parametrize("name", list(size_rows.ROWS)[::2])
def test_programs(name):
    assert graphs_after_calls(name, "inductor") == {**PEER, **FEWER, **MORE}[name]


def compiled(function, backend="eager", **options):
    torch._dynamo.reset()
    counting = Counting(backend)
    return torch.compile(function, backend=counting, **options), counting.graphs


def test_graphs_compute_with_sizes():
    f, graphs = compiled(lambda x: x.view(x.shape[0] * x.shape[1]), dynamic=True)
    f(torch.ones(2, 3))
    targets = [n.target for n in graphs[0].graph.nodes if n.op.startswith("call")]
    assert targets.count("size") == 2 and torch.equal(graphs[0](torch.ones(4, 5))[0], torch.ones(20))


def test_one_program_serves_all_sizes():
    f, graphs = compiled(lambda x: (x.relu() @ x.t()).sum(0) / x.shape[0], "inductor", dynamic=True)
    for n in range(2, 30):
        x = torch.randn(n, 4)
        torch.testing.assert_close(f(x), (x.relu() @ x.t()).sum(0) / n)
    assert len(graphs) == 1 and counters["engine"] == {"programs": 1}


def test_mark_dynamic():
    f, graphs = compiled(lambda x: x * x.shape[0])
    x = torch.ones(3, 4)
    torch._dynamo.mark_dynamic(x, 0)
    f(x)
    assert f(torch.ones(5, 4))[0, 0] == 5 and len(graphs) == 1
    f(torch.ones(5, 6))
    assert len(graphs) == 2


def test_mark_dynamic_of_a_size_that_is_constant():
    x = torch.ones(3, 4)
    torch._dynamo.mark_dynamic(x, 0)
    for function in (lambda x: x + 1 if x.shape[0] == 3 else x, lambda x: x + torch.ones(3, 1), lambda x: [x for _ in range(x.shape[0])]):
        f, _ = compiled(function)
        with pytest.raises(ConstraintViolationError, match="specialized it to be a constant"):
            f(x)
    y = torch.ones(3, 4)
    torch._dynamo.maybe_mark_dynamic(y, 0)
    f, graphs = compiled(lambda y: y + 1 if y.shape[0] == 3 else y - 1)
    f(y), f(torch.ones(5, 4))
    assert len(graphs) == 2


def test_mark_dynamic_with_a_range():
    f, graphs = compiled(lambda x: x * 2)
    x = torch.ones(3, 4)
    torch._dynamo.mark_dynamic(x, 0, min=2, max=8)
    f(x), f(torch.ones(8, 4))
    assert len(graphs) == 1
    f(torch.ones(9, 4))
    assert len(graphs) == 2
    with pytest.raises(ConstraintViolationError):
        torch._dynamo.mark_dynamic(torch.ones(9, 4), 0, max=8)
    with pytest.raises(NotImplementedError):
        torch._dynamo.mark_dynamic(x, 0, hint_override=4)


def test_mark_static():
    f, graphs = compiled(lambda x: x * 2, dynamic=True)
    for n in (3, 4):
        x = torch.ones(n, 4)
        torch._dynamo.mark_static(x, 0)
        f(x)
    assert len(graphs) == 2


@pytest.mark.parametrize(("setting", "value", "expected"), [
    ("automatic_dynamic_shapes", False, 3), ("assume_static_by_default", False, 1), ("dynamic_shapes", False, 3),
])  # fmt: skip
def test_settings(setting, value, expected):
    with torch._dynamo.config.patch(setting, value):
        f, graphs = compiled(lambda x: x * 2)
        for n in (2, 3, 4):
            f(torch.ones(n, 3))
    assert len(graphs) == expected


def test_ints_of_modules_and_classes_are_constants():
    class Scale(torch.nn.Module):
        def __init__(self, k):
            super().__init__()
            self.k = k

        def forward(self, x):
            return x * self.k

    f, graphs = compiled(lambda m, x: m(x), dynamic=True)
    for k in (3, 4, 5):
        assert f(Scale(k), torch.ones(2))[0] == k
    assert len(graphs) == 3
    with torch._dynamo.config.patch(specialize_int=True):
        f, graphs = compiled(lambda x, k: x * k)
        for k in (3, 4, 5):
            f(torch.ones(2), k)
    assert len(graphs) == 3


def test_layouts():
    """The code for a contiguous tensor is not used for a transposed one or for a slice."""
    f, graphs = compiled(lambda x: x.contiguous().view(-1) * 2, "inductor", dynamic=True)
    for x in (torch.randn(3, 4), torch.randn(5, 6), torch.randn(4, 3).t(), torch.randn(6, 7).t(), torch.randn(8, 9)[:, :5]):
        torch.testing.assert_close(f(x), x.contiguous().view(-1) * 2)
    assert len(graphs) == 3


def test_autocast_has_constant_sizes():
    def function(x):
        with torch.autocast("cpu"):
            return x @ x.t()

    regions = torch._C.add_autocast_nesting(0)
    for is_entered in (False, True):
        f, graphs = compiled(function, "inductor", dynamic=True)
        with torch.autocast("cpu", enabled=is_entered):
            for n in (3, 4):
                x = torch.randn(n, 5)
                torch._dynamo.mark_dynamic(x, 0)
                assert torch.equal(f(x), function(x))
        assert len(graphs) == 2
    assert torch._C.add_autocast_nesting(0) == regions


@pytest.mark.parametrize("backend", ["inductor", "eager"])
def test_breaks_in_autocast_leave_it(backend):
    def function(x):
        with torch.autocast("cpu"):
            y = x @ x.t()
            torch._dynamo.graph_break()
            seen.append(torch._C.add_autocast_nesting(0))
            return y @ y

    seen, before = [], torch._C.add_autocast_nesting(0)
    f = torch.compile(function, backend=backend)
    for enabled in (False, True):  # as the only region, and in another one
        with torch.autocast("cpu", enabled=enabled):
            for _ in range(3):
                x = torch.randn(3, 5)
                assert f(x).dtype is torch.bfloat16
        assert torch._C.add_autocast_nesting(0) == before
    assert seen == [before + 2] * 6


def test_checks_of_recorded_sizes():
    trace = torch._C.ProgramTrace([], True, only_metadata=True, records_sizes=True)
    try:
        x = trace.add_input(torch.ones(4, 3), [0])
        rows = x.view(-1).size(0)
        assert type(rows) is torch.SymInt and rows > 6 and type(x.size(1)) is int
        torch.ones(4, 2) @ (x.t() @ x)[:2]
        checks = trace.size_checks()
    finally:
        trace.stop()
    assert checks.hold([[9, 3]]) and not checks.hold([[2, 3]])
    assert "<= 6" in checks.failure and not checks.hold([[4, 1]])
    with pytest.raises(ValueError, match="sizes of 1 inputs, got 2"):
        checks.hold([[9, 3], [9, 3]])
    with pytest.raises(RuntimeError, match="records sizes"):
        torch._C.ProgramTrace([], True, only_metadata=True).size_checks()


def test_checks():
    def function(x, k):
        torch._check(x.shape[0] < 100, lambda: "too long")
        torch._check_is_size(k)
        return x * k

    f, graphs = compiled(function, fullgraph=True, dynamic=True)
    assert f(torch.ones(4), 3)[0] == 3 and f(torch.ones(50), 5)[0] == 5 and len(graphs) == 1
    with pytest.raises((RuntimeError, Unsupported), match="too long|RuntimeError is raised"):
        f(torch.ones(200), 3)


def test_side_effects_contain_ints():
    log = {"rows": 0, "all": [0, 0]}

    def function(x):
        log["rows"] = x.shape[0]
        log["all"][1] = (x * 2).flatten().shape[0] + 1
        return x

    f, graphs = compiled(function, "inductor", dynamic=True)
    for n in (3, 4):
        f(torch.ones(n, 2))
        assert log == {"rows": n, "all": [0, 2 * n + 1]} and type(log["rows"]) is type(log["all"][1]) is int
    assert len(graphs) == 1


def test_modules_with_parameters():
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 2))
    f, graphs = compiled(model, "inductor")
    for n in (2, 3, 5, 7):
        x = torch.randn(n, 4)
        torch.testing.assert_close(f(x), model(x))
        f(x).sum().backward()
    assert len(graphs) == 2


def test_the_limit_counts_and_the_reason_is_shown(capfd, monkeypatch):
    from teletensor._dynamo import _logs

    monkeypatch.setattr(_logs, "_enabled", {"recompiles"})
    f, graphs = compiled(lambda x: x + 1 if x.shape[0] > 5 else x - 1, dynamic=True)
    f(torch.ones(3)), f(torch.ones(9))
    assert len(graphs) == 2 and "what was decided by sizes" in capfd.readouterr().err


def bytes_and_sums(x):
    return x.nbytes, x.t().nbytes + 1, x.shape + (2,), type(x.shape + (2,)).__name__, x.reshape(x.shape + (1,))


def test_bytes_and_sums_of_sizes():
    for dynamic in (None, True):
        torch._dynamo.reset()
        compiled = torch.compile(bytes_and_sums, dynamic=dynamic)
        for n in (3, 4, 5, 1, 0, 7):
            got, want = compiled(torch.ones(n, 2)), bytes_and_sums(torch.ones(n, 2))
            assert got[:4] == want[:4] and [type(v) for v in got] == [type(v) for v in want]
            assert got[4].shape == want[4].shape


def test_sizes_that_alternate_are_kept():
    def f(x):
        return (x * 2).relu().sum(0)

    compiled = torch.compile(f, dynamic=True, fullgraph=True)
    seconds = []
    for _ in range(2):
        for n in range(2, 42):
            torch.testing.assert_close(compiled(torch.ones(n, 3)), f(torch.ones(n, 3)))
        row = torch.compiler.stats()[-1]
        seconds.append(row.compile_seconds)
        assert row.signatures == 40
    assert seconds[0] == seconds[1]  # nothing was compiled again


@pytest.mark.parametrize("dynamic", [None, True])
def test_ints_beside_derivatives(dynamic):
    def shifted(y, n):
        return torch.func.grad(lambda a: a.tanh().sum())(y) + n

    def cut(n, y):
        return torch.func.vjp(lambda a: (a * n).tanh(), y[:n])[1](y[:n])[0]

    y = torch.arange(9.0) / 7
    for function, order in ((shifted, lambda n: (y, n)), (cut, lambda n: (n, y))):
        compiled = torch.compile(function, dynamic=dynamic)
        for n in range(1, 8):
            assert torch.equal(compiled(*order(n)), function(*order(n)))
