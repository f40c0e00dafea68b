"""Numbers that depend on values of tensors (unbacked symbols) in graphs of torch.export and make_fx."""

from __future__ import annotations

import inspect
import io
import json
import re

import pytest

from .unbacked_cases import CAPPED, CASES, REFUSED, M, X, Y


def _tensors(torch, values):
    return tuple(torch.tensor(v) for v in values)


def _module(torch, function):
    """A module whose forward has the parameters of a function behind `torch`."""
    names = ", ".join(list(inspect.signature(function).parameters)[1:])
    namespace = {"function": function, "torch": torch}
    exec(f"class Model(torch.nn.Module):\n    def forward(self, {names}): return function(torch, {names})\n", namespace)
    return namespace["Model"]()


def _check(torch, function, found, calls):
    for values in calls:
        expected = function(torch, *_tensors(torch, values))
        got = found(*_tensors(torch, values))
        assert type(got) is type(expected)
        torch.testing.assert_close(got, expected, equal_nan=True, msg=lambda m, values=values: f"{values}: {m}")


@pytest.mark.parametrize("name", CASES)
def test_exported_programs_serve_other_values(torch, name):
    function, example, others = CASES[name]
    program = torch.export.export(_module(torch, function), _tensors(torch, example))
    program.validate()
    _check(torch, function, program.module(), [example, *others])
    loaded = program
    for _ in range(2):  # a loaded program can be saved, too
        stored = io.BytesIO()
        torch.export.save(loaded, stored)
        stored.seek(0)
        loaded = torch.export.load(stored)
        assert loaded.range_constraints == program.range_constraints
    _check(torch, function, loaded.module(), [example, *others])


@pytest.mark.parametrize("name", CASES)
def test_decomposed_programs_serve_other_values(torch, name):
    function, example, others = CASES[name]
    program = torch.export.export(_module(torch, function), _tensors(torch, example)).run_decompositions()
    _check(torch, function, program.module(), [example, *others])


@pytest.mark.parametrize("mode", ["symbolic", "fake"])
@pytest.mark.parametrize("name", CASES)
def test_traced_graphs_serve_other_values(torch, name, mode):
    from teletensor.fx.experimental.proxy_tensor import make_fx

    function, example, others = CASES[name]
    names = ", ".join(list(inspect.signature(function).parameters)[1:])
    traced = make_fx(eval(f"lambda {names}: f(t, {names})", {"f": function, "t": torch}), tracing_mode=mode)  # noqa: S307
    _check(torch, function, traced(*_tensors(torch, example)), [example, *others])


COUNTS = (9, 1000, 30000)


def _inputs(torch):
    """Inputs of several sizes with few, half and all elements above 0.5."""
    found = [torch.linspace(0, 1, n) ** power for n in COUNTS for power in (9, 1, 0)]
    return [(x,) for x in found]


@pytest.mark.parametrize("name", CAPPED)
def test_sizes_with_limits_are_computed_from_their_own_tensors(torch, name):
    function = CAPPED[name]
    size = torch.export.Dim("n", max=40000)
    program = torch.export.export(
        _module(torch, function), (torch.linspace(0, 1, 20),), dynamic_shapes={"x": {0: size}}
    )
    for found in (program, program.run_decompositions()):
        for values in _inputs(torch):
            torch.testing.assert_close(found.module()(*values), function(torch, *values), equal_nan=True)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", CAPPED)
def test_limits_in_programs_of_constant_sizes(torch, name, count):
    from teletensor.fx.experimental.proxy_tensor import make_fx

    function = CAPPED[name]
    inputs = [v for v in _inputs(torch) if v[0].shape[0] == count]
    program = torch.export.export(_module(torch, function), inputs[1])
    traced = make_fx(lambda x: function(torch, x), tracing_mode="fake")(*inputs[1])
    for found in (program.module(), traced):
        for values in inputs:
            torch.testing.assert_close(found(*values), function(torch, *values), equal_nan=True)


@pytest.mark.parametrize("name", CAPPED)
def test_limits_in_symbolic_graphs(torch, name):
    from teletensor.fx.experimental.proxy_tensor import make_fx

    function = CAPPED[name]
    traced = make_fx(lambda x: function(torch, x), tracing_mode="symbolic")(torch.linspace(0, 1, 20))
    assert "s0" in traced.shape_env.var_to_val
    for values in _inputs(torch):
        torch.testing.assert_close(traced(*values), function(torch, *values), equal_nan=True)


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_graph_serves_raises(torch, name):
    from teletensor.fx.experimental.proxy_tensor import make_fx
    from teletensor.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

    function, example = REFUSED[name]
    with pytest.raises(GuardOnDataDependentSymNode):
        torch.export.export(_module(torch, function), _tensors(torch, example))
    for mode in ("symbolic", "fake"):
        with pytest.raises(GuardOnDataDependentSymNode):
            make_fx(lambda n, x: function(torch, n, x), tracing_mode=mode)(*_tensors(torch, example))


# Calls of a program that violate what it was recorded for.
VIOLATIONS = {
    "ranged": (6, X), "one_value": (3, X), "split_by": ([2, 2], X), "checked_masks": (X, Y), "two_masks": (X, Y), "narrow": (4, X),
    "zeros": (-1,), "repeat_interleave": (X, [1, -1, 1]), "repeat_interleave_size": (X, [1, 1, 2]), "divided": (4, [1.0] * 6),
}  # fmt: skip


@pytest.mark.parametrize("name", VIOLATIONS)
def test_programs_check_what_they_rely_on(torch, name):
    function, example, _ = CASES[name]
    program = torch.export.export(_module(torch, function), _tensors(torch, example))
    for found in (program, program.run_decompositions()):
        with pytest.raises(RuntimeError, match="Runtime assertion failed|must match|exceeds"):
            found.module()(*_tensors(torch, VIOLATIONS[name]))


def test_checks_are_nodes_that_passes_keep(torch):
    function, example, _ = CASES["one_value"]
    program = torch.export.export(_module(torch, function), _tensors(torch, example))
    program.graph.eliminate_dead_code()
    names = [str(n.target) for n in program.graph.nodes if n.op == "call_function"]
    assert names[0] == "aten.item.default" and "aten._assert_scalar.default" in names
    assert "Runtime assertion failed for expression u0 == 4" in program.graph_module.code


def test_ranges_of_symbols(torch):
    def ranges(name):
        function, example, _ = CASES[name]
        program = torch.export.export(_module(torch, function), _tensors(torch, example))
        return {k: repr(v) for k, v in program.range_constraints.items()}

    assert ranges("mask_sum") == dict.fromkeys(("u0", "u1", "u2"), "VR[0, 3]")
    assert ranges("item_arithmetic") == {"u0": "VR[-int_oo, int_oo]"}
    assert ranges("ranged") == {"u0": "VR[2, 5]"}
    assert {ranges("split_by")[u] for u in ("u0", "u1")} == {"VR[0, int_oo]"}
    assert {k: v for k, v in ranges("floats").items() if "f" in k} == {"zuf0": "VR[-int_oo, int_oo]"}
    assert ranges("slice_without_check")["u0"] == "VR[-int_oo, int_oo]"


def test_files_have_ranges_of_all_symbols(torch):
    """PyTorch does not load a file with other symbols."""
    from teletensor.export._serialize import program_json

    def function(torch, x):
        torch._check((x > -9).all().item())
        y = x.clone()
        y[x > 0] = y[x > 0] * 2
        y[~(x > 0)] -= 1
        return y, x[y > 0].shape[0]

    program = torch.export.export(_module(torch, function), (torch.tensor(X),))
    assert repr(program.range_constraints["u0"]) == "VR[0, 1]"
    for found in (program, program.run_decompositions()):
        text = json.dumps(program_json(found))
        assert set(re.findall(r"Symbol\('(\w+)'", text)) <= set(found.range_constraints)
        assert "Equality(Symbol('u0'), Integer(1))" in text
        _check(torch, function, found.module(), [(X,), (Y,), ([-1.0, -2.0, -3.0],)])


def test_signatures_name_numbers(torch):
    from teletensor.export.graph_signature import SymFloatArgument, SymIntArgument

    function, example, _ = CASES["sliced"]
    program = torch.export.export(_module(torch, function), _tensors(torch, example))
    assert isinstance(program.graph_signature.output_specs[2].arg, SymIntArgument)
    text = str(program.graph_signature).split("# outputs")[1]
    assert text.split() == ["mul:", "USER_OUTPUT", "slice_2:", "USER_OUTPUT", "item:", "USER_OUTPUT"]
    function, example, _ = CASES["floats"]
    program = torch.export.export(_module(torch, function), _tensors(torch, example))
    assert isinstance(program.graph_signature.output_specs[4].arg, SymFloatArgument)
    with pytest.raises(RuntimeError, match="data-dependent expression u0 != 0"):
        torch.export.export(_module(torch, lambda torch, x: (x > 0).all().item()), (torch.ones(2),))


def test_sizes_of_arguments_and_of_results(torch):
    """Symbols of both kinds: relations between them are proved from what the module checks and from the operators."""
    batch = torch.export.Dim("batch", min=2, max=64)

    def function(torch, x):
        y = x[x[:, 0] > 0]
        torch._check(y.shape[0] <= x.shape[0])
        full = x.new_zeros(x.shape[0], 2)
        full[: y.shape[0]] = y
        return full, y.shape[0] + x.shape[0]

    module = _module(torch, function)
    program = torch.export.export(module, (torch.tensor(M),), dynamic_shapes={"x": {0: batch}})
    assert repr(program.range_constraints["batch"]) == "VR[2, 64]"
    for found in (program, program.run_decompositions()):
        _check(torch, function, found.module(), [(M,), (M * 3,), ([[1.0, 2.0]] * 9,), ([[-1.0, 2.0]] * 5,)])
    auto = torch.export.export(module, (torch.tensor(M),), dynamic_shapes={"x": {0: torch.export.Dim.AUTO}})
    _check(torch, function, auto.module(), [(M,), (M * 3,)])


def test_modules_with_parameters(torch):
    class Pooled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 4)
            self.register_buffer("count", torch.zeros((), dtype=torch.int64))

        def forward(self, x, lengths):
            mask = torch.arange(x.shape[1])[None] < lengths[:, None]
            tokens = self.layer(x[mask])
            self.count += tokens.shape[0]
            return torch.relu(tokens).sum(0), tokens.shape[0]

    x = torch.randn(3, 4, 2)
    model = Pooled()
    program = torch.export.export(model, (x, torch.tensor([1, 4, 2])))
    for found in (program, program.run_decompositions()):
        run, total = found.module(), model.count.clone()
        for counts in ([1, 4, 2], [4, 4, 4], [0, 1, 0], [0, 0, 0]):
            expected = Pooled()
            expected.load_state_dict(model.state_dict())
            result = run(x, torch.tensor(counts))
            torch.testing.assert_close(result, expected(x, torch.tensor(counts)))
            total += sum(counts)
            assert run.count.item() == total.item()
    parts = torch.export.unflatten(program)
    torch.testing.assert_close(parts(x, torch.tensor([2, 0, 1])), run(x, torch.tensor([2, 0, 1])))


def test_strict_mode_captures_numbers(torch):
    for name in ("zeros", "mask_sum", "narrow"):
        function, example, others = CASES[name]
        program = torch.export.export(_module(torch, function), _tensors(torch, example), strict=True)
        _check(torch, function, program.module(), others)


def test_symbols_of_a_graph(torch):
    from teletensor.fx.experimental.proxy_tensor import make_fx

    module = make_fx(lambda x: x[x > 0] * 2, tracing_mode="symbolic")(torch.tensor(X))
    assert set(module.shape_env.var_to_val) == {"s0", "u0"}


def test_a_constant_with_a_size_in_it_fixes_the_size(torch):
    """The graph has no symbol for a size that a constant tensor contains, as in PyTorch."""
    from teletensor.fx.experimental.proxy_tensor import make_fx

    module = make_fx(lambda x: x + torch.tensor([x.shape[0]]), tracing_mode="symbolic")(torch.ones(3))
    assert list(module.shape_env.var_to_val) == []
    assert module(torch.ones(3)).tolist() == [4.0, 4.0, 4.0]


def test_sizes_have_other_names_than_numbers_that_depend_on_values(torch):
    with pytest.raises(ValueError, match="expected a name other than u0, u1"):
        torch.export.Dim("u0")


def test_numbers_are_not_read_after_a_recording(torch):
    kept = []

    def function(torch, x):
        kept.append(x[x > 0].shape[0])
        return x[x > 0] * 2

    torch.export.export(_module(torch, function), (torch.tensor(X),))
    for number in kept[1:]:
        with pytest.raises(RuntimeError, match="recording that has ended"):
            torch.zeros(number)


def test_sizes_of_results_that_infer_a_dimension(torch):
    """expand(-1) keeps a size: the result's size is not the argument."""

    def function(torch, n, x):
        return torch.ones(x[None].expand(n.item(), 3).shape[0])

    program = torch.export.export(_module(torch, function), (torch.tensor(2), torch.tensor(X)))
    _check(torch, function, program.module(), [(4, X), (-1, X)])


def test_squeezed_dimensions_are_checked(torch):
    def function(torch, x):
        return x[x > 0].squeeze() * 2

    found = torch.export.export(_module(torch, function), (torch.tensor(X),)).module()
    _check(torch, function, found, [(X,), (Y,), ([-1.0, -1.0, -1.0],)])
    with pytest.raises(RuntimeError, match="u0 != 1"):
        found(torch.tensor([1.0, -1.0, -1.0]))


def test_a_check_that_the_function_catches_is_in_the_program(torch):
    def function(torch, x):
        n = x[x > 0].shape[0]
        try:
            torch._check(n == 2)
        except BaseException:  # noqa: BLE001
            pass
        return x * n

    found = torch.export.export(_module(torch, function), (torch.tensor(X),)).module()
    assert found(torch.tensor(X)).tolist() == [2.0, -2.0, 6.0]
    with pytest.raises(RuntimeError, match="u0 == 2"):
        found(torch.tensor(Y))


def test_counts_do_not_exceed_the_size_of_the_mask(torch):
    def function(torch, x):
        y = x[x > 0]
        return y * 2 if y.shape[0] <= x.shape[0] else y * 3

    size = torch.export.Dim("n")
    def selected(torch, x):
        y = x.masked_select(x > 0)
        return y * 2 if y.shape[0] <= x.shape[0] else y * 3

    for counted in (function, selected):
        found = torch.export.export(_module(torch, counted), (torch.ones(5),), dynamic_shapes={"x": {0: size}}).module()
        _check(torch, counted, found, [(X,), ([1.0] * 900,)])
    with pytest.raises(RuntimeError, match="data-dependent"):
        torch.export.export(_module(torch, lambda torch, x: x if x[x > 0].shape[0] <= 5 else -x), (torch.ones(5),),
                            dynamic_shapes={"x": {0: size}})  # fmt: skip


def test_the_order_of_extrema_with_nan(torch):
    def function(torch, x):
        v = x.sum().item()
        return torch.sym_max(v, 1.0) * x, torch.sym_max(1.0, v) * x, torch.sym_min(0.0, v) * x

    found = torch.export.export(_module(torch, function), (torch.ones(3),)).module()
    _check(torch, function, found, [([2.0, 1.0, 1.0],), ([float("nan"), 1.0, 1.0],), ([float("inf"), 1.0, -1.0],)])


def test_programs_with_an_index_keep_small_sizes(torch):
    """Only numbers that depend on values restrict the sizes of a decomposed program."""
    table = torch.arange(6.0)
    size = torch.export.Dim("n", min=0)
    program = torch.export.export(_module(torch, lambda torch, t, i: torch.relu(t[i])), (table, torch.tensor([1, 2])),
                                  dynamic_shapes={"t": None, "i": {0: size}})  # fmt: skip
    found = program.run_decompositions().module()
    for i in ([], [3], [1, 5, 0]):
        assert found(table, torch.tensor(i, dtype=torch.int64)).tolist() == [float(n) for n in i]


def test_proxies_are_no_numbers_of_a_recording(torch):
    traced = torch.fx.symbolic_trace(_module(torch, lambda torch, x: torch.sym_not(x.shape[0] > 2)))
    assert traced(torch.ones(3)) is False and traced(torch.ones(2)) is True
    with pytest.raises(TypeError, match="cond must be a bool"):
        torch.fx.symbolic_trace(_module(torch, lambda torch, x: (torch._check(x.shape[0] > 2), x)[1]))


def test_real_mode_calls_a_function_once(torch):
    from teletensor.fx.experimental.proxy_tensor import make_fx

    calls = []

    def function(x, i):
        calls.append(1)
        return x[x[:, 0] > 0, i]

    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert make_fx(function)(x, torch.tensor([0, 1]))(x, torch.tensor([1, 0])).tolist() == [2.0, 3.0]
    assert len(calls) == 1


def test_real_mode_records_functions_that_catch_the_error_of_a_value(torch):
    from teletensor.fx.experimental.proxy_tensor import make_fx

    def function(x):
        try:
            k = x.sum().item()
        except RuntimeError:
            k = 3.0
        return x * k

    assert make_fx(function, tracing_mode="real")(torch.ones(2))(torch.ones(2)).tolist() == [3.0, 3.0]


def test_random_constants_do_not_fix_sizes(torch):
    import random

    from teletensor.fx.experimental.proxy_tensor import make_fx

    traced = make_fx(lambda x: x * torch.tensor([random.random()]), tracing_mode="symbolic")(torch.ones(3))
    assert list(traced.shape_env.var_to_val) == ["s0"]
