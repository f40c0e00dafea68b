"""make_fx of torch.cond, while_loop, scan and map: nodes with graphs, which serve other values."""

from __future__ import annotations

import io

import pytest

VALUES = ([1.0, 2.0, 3.0], [-1.0, -2.0, -3.0], [0.5, 0.5, 0.1])
BRANCHES = ["true_graph_0", "false_graph_0"]
LOOPS = ["while_loop_cond_graph_0", "while_loop_body_graph_0"]


def functions(torch):
    """By name: a function of a vector with three elements, and what its graph calls, as PyTorch's."""
    from teletensor._higher_order_ops import map as map_rows
    from teletensor._higher_order_ops import scan, while_loop

    outside, linear = torch.tensor([2.0, 3.0, 4.0]), torch.nn.Linear(3, 3)

    def cond(x):
        return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,))

    def captures(x):
        return torch.cond(x.sum() > 0, lambda x: linear(x) * outside, lambda x: x - outside, (x,))

    def nested(x):
        def inner(x):
            return torch.cond(x[0] > 1, lambda x: x.sin() * outside, lambda x: x.cos(), (x,))

        return torch.cond(x.sum() > 0, inner, lambda x: x - 1, (x * 2,)) + 1

    def trees(x):
        return torch.cond(x.sum() > 0, lambda d: {"a": d["a"] + 1}, lambda d: {"a": d["a"] - 1}, ({"a": x},))["a"]

    def loop(x):
        return while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2), (torch.zeros((), dtype=torch.int64), x))[1]

    def scanned(x):
        return torch.stack([r.sum() for r in scan(lambda c, r: (c + r, c * r), torch.zeros(3), x.expand(4, 3))])

    def mapped(x):
        return map_rows(lambda row, w: row * w, x.expand(4, 3), outside)

    def creates(x):
        def sums(x):
            y = torch.tensor([1.0, 2.0, 3.0])
            y += x
            return y * x

        return torch.cond(x.sum() > 0, sums, lambda x: torch.cond(x[0] < -1, lambda y: y * torch.tensor(3.0), lambda y: y, (x,)), (x,))

    def loop_creates(x):
        def body(i, y):
            k = torch.tensor([1.0, 1.0, 1.0])
            k *= 2  # each time from 1
            k += y
            return i + 1, k

        return while_loop(lambda i, y: i < torch.tensor(3), body, (torch.tensor(0), x))[1]

    constant = ["_tensor_constant0"]
    return {
        "cond": (cond, ["sum", "gt", *BRANCHES, "cond", "getitem"]),
        "captures": (captures, None),
        "nested": (nested, ["sum", "gt", "mul", *constant, *BRANCHES, "cond", "getitem", "add"]),
        "trees": (trees, ["sum", "gt", *BRANCHES, "cond", "getitem"]),
        "loop": (loop, ["zeros", *LOOPS, "while_loop", "getitem"]),
        "scanned": (scanned, None),
        "creates": (creates, None),
        "loop_creates": (loop_creates, None),
        "mapped": (mapped, ["expand", *constant, "select", "body_graph_0", "map_impl", "getitem"]),
    }


def name_of(node) -> str:
    found = getattr(node.target, "_opname", None) or getattr(node.target, "__name__", None)
    return found or str(node.target)


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
@pytest.mark.parametrize(
    "name", ["cond", "captures", "nested", "trees", "loop", "scanned", "mapped", "creates", "loop_creates"]
)
def test_graphs_serve_other_values(torch, name, mode):
    from teletensor.fx.experimental.proxy_tensor import make_fx

    function, expected = functions(torch)[name]
    module = make_fx(function, tracing_mode=mode)(torch.tensor(VALUES[0]))
    for values in VALUES:
        x = torch.tensor(values)
        assert torch.equal(module(x), function(x))
    if expected is not None:
        assert [name_of(n) for n in module.graph.nodes if n.op not in ("placeholder", "output")] == expected


@pytest.mark.parametrize("name", ["captures", "nested", "loop", "scanned", "mapped", "creates", "loop_creates"])
def test_exported_programs_serve_other_values(torch, name):
    function, _ = functions(torch)[name]
    module = torch.nn.Module()
    module.forward = lambda x: function(x)
    program = torch.export.export(module, (torch.tensor(VALUES[0]),))
    stored = io.BytesIO()
    torch.export.save(program, stored)
    stored.seek(0)
    for found in (program.module(), torch.export.load(stored).module()):
        for values in VALUES:
            x = torch.tensor(values)
            assert torch.equal(found(x), function(x))


def test_conditions_of_loops_return_one_tensor(torch):
    """PyTorch refuses to execute others."""
    from teletensor.fx.experimental.proxy_tensor import make_fx

    module = make_fx(functions(torch)["loop"][0])(torch.tensor(VALUES[0]))
    (output,) = (n for n in module.while_loop_cond_graph_0.graph.nodes if n.op == "output")
    assert isinstance(output.args[0], torch.fx.Node)


def test_errors_that_a_branch_catches_raise(torch):
    from teletensor.fx.experimental.proxy_tensor import make_fx

    def catches(x):
        try:
            return x * x.sum().item()
        except Exception:  # noqa: BLE001 - as a user may write
            return x + 1

    for mode in ("real", "fake", "symbolic"):
        with pytest.raises(RuntimeError, match="data-dependent"):
            make_fx(lambda x: torch.cond(x.sum() > 0, catches, lambda x: x, (x,)), tracing_mode=mode)(torch.tensor(VALUES[0]))
