"""Passes: matching and replacement, splitting, shapes, drawing, folding, fusion and managers."""

from __future__ import annotations

import copy
import operator
import runpy
import shutil
import sys

import numpy as np
import pytest

import teletensor as torch
from teletensor import fx, nn
from teletensor.fx.experimental import const_fold, normalize, optimization
from teletensor.fx.passes import (
    graph_drawer,
    graph_manipulation,
    net_min_base,
    operator_support,
    param_fetch,
    shape_prop,
    split_utils,
    tools_common,
)
from teletensor.fx.passes import pass_manager as plain_manager
from teletensor.fx.passes import split_module as split
from teletensor.fx.passes.dialect.common import cse_pass
from teletensor.fx.passes.infra import partitioner, pass_base
from teletensor.fx.passes.infra import pass_manager as manager
from teletensor.fx.passes.utils import compare_graphs, matcher_utils, matcher_with_name_node_map_utils
from teletensor.fx.subgraph_rewriter import replace_pattern_with_filters
from tests.conftest import ROOT

from . import programs

# -- patterns: program, pattern, replacement, number of matches, result for x = 2 and y = 3
PATTERNS = {
    "one node": (lambda x, y: x + y, lambda a, b: a + b, lambda a, b: a * b, 1, 6),
    "chain": (lambda x, y: -(x + y) * 2, lambda a, b: -(a + b), lambda a, b: a - b, 1, -2),
    "twice": (lambda x, y: (x + y) * (y + x), lambda a, b: a + b, lambda a, b: a - b, 2, -1),
    "nested": (lambda x, y: abs(abs(x - y)), lambda a: abs(a), lambda a: a * 3, 2, -9),
    "replacement's input is a replaced result": (lambda x, y: abs(x) + abs(abs(y)), lambda a: abs(abs(a)), lambda a: -a, 1, -1),
    "same argument twice": (lambda x, y: x * x + x * y, lambda a: a * a, lambda a: a, 1, 8),
    "argument used elsewhere": (lambda x, y: (x + y) * x, lambda a, b: a + b, lambda a, b: b, 1, 6),
    "inner result used elsewhere": (lambda x, y: [s := x + y, -s * s][1], lambda a, b: -(a + b), lambda a, b: a, 0, -25),
    "literal": (lambda x, y: (x + 1) * (y + 2), lambda a: a + 1, lambda a: a - 1, 1, 5),
    "literal matched by an input": (lambda x, y: x + 1, lambda a, b: a + b, lambda a, b: a * b, 1, 2),
    "two results": (lambda x, y: (x + y) * (x - y), lambda a, b: (a + b, a - b), lambda a, b: (a, b), 1, 6),
    "returned": (lambda x, y: [x + y, y][0], lambda a, b: a + b, lambda a, b: b, 1, 3),
    "none": (lambda x, y: x + y, lambda a, b: a % b, lambda a, b: a, 0, 5),
    "overlapping": (lambda x, y: x + y + x + y, lambda a, b, c: a + b + c, lambda a, b, c: a * b * c, 1, 30),
    "no path through others": (lambda x, y: [a := -x, b := abs(a), a + b][2], lambda a, b: -a + b, lambda a, b: a, 0, 0),
}


@pytest.mark.parametrize(("program", "pattern", "replacement", "count", "result"), PATTERNS.values(), ids=PATTERNS)
def test_patterns_are_replaced(program, pattern, replacement, count, result):
    traced = fx.symbolic_trace(program)
    matches = fx.replace_pattern(traced, pattern, replacement)
    traced.graph.lint()
    assert len(matches) == count
    assert fx.GraphModule(traced, traced.graph)(2, 3) == traced(2, 3) == result


def test_the_matches_map_the_pattern():
    traced = fx.symbolic_trace(lambda x, y: (x + y) * 2)
    before = {node.name: node for node in traced.graph.nodes}
    (match,) = fx.replace_pattern(traced, lambda a, b: a + b, lambda a, b: a - b)
    assert match.anchor.name == "add"
    assert {pn.name: gn for pn, gn in match.nodes_map.items()} == {n: before[m] for n, m in [("a", "x"), ("b", "y"), ("add", "add")]}


def test_patterns_with_modules_and_filters():
    class Pattern(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(2, 2)

        def forward(self, x):
            return self.lin(x) + 1

    class Replacement(nn.Module):
        def __init__(self):
            super().__init__()
            self.new = nn.Linear(2, 2)

        def forward(self, x):
            return self.new(x)

    torch.manual_seed(0)
    traced, replacement = fx.symbolic_trace(Pattern()), fx.symbolic_trace(Replacement())
    assert len(fx.replace_pattern(traced, fx.symbolic_trace(Pattern()), replacement)) == 1
    assert [name for name, _ in traced.named_children()] == ["new"]
    x = torch.randn(3, 2)
    np.testing.assert_array_equal(traced(x).detach().numpy(), replacement(x).detach().numpy())
    assert traced.new is not replacement.new

    traced = fx.symbolic_trace(lambda x: (x + 1) * (x + 2))
    only = [lambda match, graph, pattern: match.anchors[0].name == "add" and match.returning_nodes[0].args[1] == 2]
    found = replace_pattern_with_filters(traced, lambda a: a + 0, lambda a: a - 1, only, ignore_literals=True)
    assert len(found) == 1 and [n.name for n in found[0].replacements] == ["sub"]
    assert traced(3) == 8

    def made(match, graph, pattern):
        new = fx.Graph()
        a = new.placeholder("a")
        new.output(new.call_function(operator.mul, (a, match.returning_nodes[0].args[1])))
        return new

    traced = fx.symbolic_trace(lambda x: (x + 4) - (x + 5))
    replace_pattern_with_filters(traced, lambda a: a + 0, replacement_callback=made, ignore_literals=True)
    assert traced(3) == -3


def test_named_nodes_of_a_pattern():
    def pattern(a, b):
        total = a + b
        return -total, {"total": total}

    traced = fx.symbolic_trace(lambda x, y: -(x + y))
    made = fx.symbolic_trace(pattern, concrete_args={"a": fx.PH, "b": fx.PH})
    if not hasattr(made, "_out_spec"):
        tree = fx.symbolic_trace(lambda t: pattern(*t), concrete_args={"t": (fx.PH, fx.PH)})
        made = tree
    matcher = matcher_with_name_node_map_utils.SubgraphMatcherWithNameNodeMap(made)
    (match,) = matcher.match(traced.graph)
    assert match.name_node_map["total"].name == "add"


def test_comparison_of_graphs():
    first, second, third = (fx.symbolic_trace(f).graph for f in (lambda x: -x + 1, lambda y: 1 - y, lambda z: -z + 1))
    assert compare_graphs(first, third) and not compare_graphs(first, second)
    with pytest.raises(ValueError, match="empty pattern"):
        matcher_utils.SubgraphMatcher(fx.Graph())
    with pytest.raises(AssertionError, match="dead code"):
        matcher_utils.SubgraphMatcher(fx.symbolic_trace(lambda x: [x + 1, x][1]).graph)


# -- splitting

SPLITS = {
    "first and rest": lambda node: 0 if node.name in ("layers_0", "stem", "lin") else 1,
    "one": lambda node: 0,
    "each": lambda node: node.name,
    "fours": lambda node: list(node.graph.nodes).index(node) // 4,
}


@pytest.mark.parametrize("options", [{}, {"keep_original_order": True, "keep_original_node_name": True}, {"tuple_return": True}], ids=str)
@pytest.mark.parametrize("callback", SPLITS)
@pytest.mark.parametrize("program", [programs.residual, programs.shared, programs.perceptron], ids=lambda p: p.__name__)
def test_split_modules_compute_the_same(program, callback, options):
    torch.manual_seed(1)
    root, (size,) = program(torch)
    traced, x, names = fx.symbolic_trace(root), torch.randn(*size), {}
    result = split.split_module(traced, root, SPLITS[callback], qualname_map=names, **options)
    result.graph.lint()
    np.testing.assert_array_equal(result(x).detach().numpy(), root(x).detach().numpy())
    parts = {str(SPLITS[callback](n)) for n in traced.graph.nodes if n.op.startswith("call")}
    assert result.meta["partition_names"] == {name for name, _ in result.named_children() if name.startswith("submod_")}
    assert result.meta["partition_names"] == {f"submod_{part}" for part in parts}
    for new, old in names.items():
        assert result.get_submodule(new) is traced.get_submodule(old)


def test_split_names_defaults_and_errors():
    traced = fx.symbolic_trace(lambda x, y=2: (x + 1) * y)
    result = split.split_module(traced, traced, lambda n: n.target is operator.mul, keep_original_input_name=False, partition_affix="p")
    assert [name for name, _ in result.named_children()] == ["submod_p_False", "submod_p_True"]
    assert [n.name for n in result.submod_p_True.graph.find_nodes(op="placeholder")] == ["arg_0", "arg_1"]
    assert result(3) == 8
    back = fx.symbolic_trace(lambda x: abs(-abs(x)))
    with pytest.raises(RuntimeError, match="cycle exists between partitions!"):
        split.split_module(back, back, lambda n: n.target is operator.neg)
    simple = split.split_module_simple(back, {node: i for i, node in enumerate(back.graph.nodes)})
    assert simple(-2) == 2


def tagged(tags):
    traced = fx.symbolic_trace(programs.residual(torch)[0])
    for node in traced.graph.nodes:
        if node.op.startswith("call"):
            node.tag = tags(node)
    return traced


def test_split_by_tags():
    traced = tagged(lambda node: "first" if node.name == "stem" or node.name.startswith("blocks_0") or node.name == "add" else "second")
    result, names = split_utils.split_by_tags(traced, ["first", "second"], return_fqn_mapping=True)
    x = torch.randn(2, 1, 6, 6)
    np.testing.assert_array_equal(result(x).detach().numpy(), traced(x).detach().numpy())
    assert names["blocks.1.conv"] == "second.blocks.1.conv"
    assert result.first.blocks.get_submodule("0").conv is traced.get_submodule("blocks.0.conv")
    with pytest.raises(AssertionError, match="order must be >= max of its upstream components"):
        split_utils.split_by_tags(tagged(lambda node: "second" if node.name == "stem" else "first"), ["first", "second"])
    with pytest.raises(AssertionError, match="Node does not have tag"):
        split_utils.split_by_tags(fx.symbolic_trace(lambda x: x + 1), ["a"])


SUPPORT = operator_support.create_op_support(lambda _, node: node.target in (operator.add, operator.getitem, torch.nn.ReLU))
# program, results of its call with 5, names of the nodes in each partition
PARTITIONS = [
    (lambda x: (x + 1) + 2, [["add", "add_1"]]),
    (lambda x: -(x + 1) + 2, []),
    (lambda x: [a := x + 1, b := a + 2, -a + b][2], [["add_1", "add_2"]]),
    (lambda x: (x + 1, x + 2), [["add", "add_1"]]),
]


@pytest.mark.parametrize(("program", "names"), PARTITIONS)
def test_supported_nodes_are_grouped(program, names):
    traced = fx.symbolic_trace(program)
    made = partitioner.CapabilityBasedPartitioner(traced, SUPPORT)
    partitions = made.propose_partitions()
    assert [[node.name for node in partition.nodes] for partition in partitions] == names
    fused = made.fuse_partitions(partitions)
    assert [name for name, _ in fused.named_children()] == [f"fused_{i}" for i in range(len(names))]
    fused.recompile()
    assert fused(5) == program(5)


# -- shapes, sizes, drawing

def test_shapes_are_recorded():
    traced = fx.symbolic_trace(nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten()))
    shape_prop.ShapeProp(traced).propagate(torch.zeros(4, 1, 5, 5))
    meta = {node.name: node.meta["tensor_meta"] for node in traced.graph.nodes}
    assert tuple(meta["_0"].shape) == (4, 2, 3, 3) and meta["_0"].requires_grad and meta["_0"].stride == (18, 9, 3, 1)
    assert meta["_1"].dtype == torch.float32 and str(meta["_1"].memory_format) == "torch.contiguous_format"
    graph_manipulation.get_size_of_all_nodes(traced)
    sizes = {node.name: tuple(node.size_bytes) for node in traced.graph.nodes if node.op != "output"}
    assert sizes == {"input_1": (400, 400), "_0": (288, 288 + 80), "_1": (288, 288)}
    with pytest.raises(RuntimeError, match="ShapeProp error for: node=%_0"):
        shape_prop.ShapeProp(traced).propagate(torch.zeros(1, 2, 5, 5))
    with pytest.raises(RuntimeError, match="no tensor metadata"):
        graph_manipulation.get_tensor_meta(next(iter(fx.symbolic_trace(abs_of).graph.nodes)))
    graph_manipulation.replace_target_nodes_with(traced, "call_module", "1", "call_method", "sum")
    assert traced(torch.zeros(4, 1, 5, 5)).shape == ()


def abs_of(x):
    return abs(x)


def test_graphs_are_drawn(tmp_path):
    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))
    shape_prop.ShapeProp(traced).propagate(torch.ones(1, 2))
    drawn = graph_drawer.FxGraphDrawer(traced, "net").get_dot_graph()
    text = drawn.to_string()
    assert "input_1 -> _0;" in text and '"_0.weight" -> _0;' in text
    assert "torch.nn.modules.linear.Linear" in text and "shape=(1, 3)" in text
    assert len(graph_drawer.FxGraphDrawer(traced, "net", ignore_parameters_and_buffers=True).get_dot_graph().get_nodes()) == 4
    drawn.write(str(tmp_path / "net.dot"))
    assert (tmp_path / "net.dot").read_text() == text
    if shutil.which("dot"):
        assert drawn.create_svg().lstrip().startswith(b"<?xml")
    else:
        with pytest.raises(FileNotFoundError, match="install Graphviz"):
            drawn.create_svg()
    whole = split.split_module(fx.symbolic_trace(lambda x: -x + 1), nn.Module(), lambda n: 0)
    assert set(graph_drawer.FxGraphDrawer(whole, "g").get_all_dot_graphs()) == {"g", "g_submod_0"}


def test_attributes_for_other_implementations():
    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 3)))
    param_fetch.lift_lowering_attrs_to_nodes(traced)
    found = traced.graph.find_nodes(op="call_module")[0].attrs_for_lowering
    assert found["name"] == "torch.nn.modules.linear.Linear" and found["weight"].shape == (3, 2)
    with pytest.raises(RuntimeError, match="is not in the module_fetch_book yet"):
        param_fetch.extract_attrs_for_lowering(nn.Tanh())


def test_supported_operators():
    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))
    modules = dict(traced.named_modules())
    shape_prop.ShapeProp(traced).propagate(torch.ones(1, 2))
    linear, relu = traced.graph.find_nodes(op="call_module")
    kinds = {"torch.nn.modules.linear.Linear": ([[torch.float64]], {}), "torch.nn.modules.activation.ReLU": None}
    support = operator_support.OperatorSupport(kinds)
    assert [support.is_node_supported(modules, node) for node in (linear, relu)] == [False, True]
    no_floats = operator_support.OpSupports.decline_if_input_dtype(torch.float32)
    named = operator_support.OpSupports.decline_if_node_in_names({linear.name})
    assert operator_support.any_chain(no_floats, named).is_node_supported(modules, relu)
    assert not operator_support.chain(no_floats, named).is_node_supported(modules, relu)


# -- common subexpressions and constants: program, calls before and after

class Twice(nn.Module):
    def __init__(self, part):
        super().__init__()
        self.part = part

    def forward(self, x):
        return self.part(x) + self.part(x)


def unknown(x):
    return x


fx.wrap("unknown")

SUBEXPRESSIONS = {
    "equal": (lambda x: (x + 1) * (x + 1), 3, 2),
    "equal after equal": (lambda x: (x + 1) * 2 + (x + 1) * 2, 5, 3),
    "types differ": (lambda x: (x + 1) * (x + 1.0) * (x + True), 5, 5),
    "order differs": (lambda x: (x + 1) * (1 + x), 3, 3),
    "methods": (lambda x: x.sum(dim=0) + x.sum(dim=0), 3, 2),
    "functions": (lambda x: torch.sum(x, dim=0) + torch.sum(x, dim=0), 3, 2),
    "other functions": (lambda x: unknown(x) + unknown(x), 3, 3),
    "other methods": (lambda x: x.unknown() + x.unknown(), 3, 3),
    "random method": (lambda x: x.bernoulli(0.5) + x.bernoulli(0.5), 3, 3),
    "random function": (lambda x: nn.functional.dropout(x) + nn.functional.dropout(x), 3, 3),
    "in place": (lambda x: (x + 1).add_(1) + (x + 1), 4, 4),
    "slices": (lambda x: x[0:1] + x[0:1], 3, 2),
    "module": (lambda: Twice(nn.Linear(2, 2)), 3, 2),
    "dropout": (lambda: Twice(nn.Sequential(nn.Dropout())), 3, 3),
    "dropout in eval mode": (lambda: Twice(nn.Dropout()).eval(), 3, 2),
    "batch norm": (lambda: Twice(nn.BatchNorm1d(2)), 3, 3),
    "module in place": (lambda: Twice(nn.ReLU(inplace=True)).eval(), 3, 3),
}


@pytest.mark.parametrize(("program", "before", "after"), SUBEXPRESSIONS.values(), ids=SUBEXPRESSIONS)
def test_equal_expressions_are_computed_once(program, before, after):
    traced = fx.symbolic_trace(program if program.__code__.co_argcount else program())
    result = cse_pass.CSEPass()(traced)
    for module, calls in ((traced, before), (result.graph_module, after)):
        assert sum(node.op.startswith("call") for node in module.graph.nodes) == calls
    assert result.modified == (before != after)
    if before != after:
        x = torch.ones(2, 2)
        np.testing.assert_array_equal(result.graph_module(x).detach().numpy(), traced(x).detach().numpy())


class Folding(nn.Module):
    def __init__(self, drop=0.0):
        super().__init__()
        self.weight = nn.Parameter(torch.full((2,), 3.0))
        self.register_buffer("shift", torch.ones(2))
        self.drop = drop

    def forward(self, x):
        scale = self.weight * 2
        if self.drop:
            return x + nn.functional.dropout(scale, self.drop)
        return x * scale + (scale + self.shift) + self.weight


def test_constants_are_folded():
    module, x = Folding(), torch.tensor([1.0, 2.0])
    expected = module(x).tolist()
    folded = const_fold.split_const_subgraphs(module)
    calls = [node.target for node in folded.graph.nodes if node.op == "call_function" and node.target is not operator.getitem]
    assert calls == [operator.mul, operator.add, operator.add]
    assert folded(x).tolist() == folded(x).tolist() == expected
    with pytest.raises(AssertionError, match="already been run"):
        folded.run_folding()
    kept = const_fold.split_const_subgraphs(module, skip_folding_node_fn=lambda node: node.target is operator.mul)
    assert kept.const_subgraph_module is None and kept(x).tolist() == expected
    assert const_fold.get_unique_attr_name_in_module(folded, "weight") == "weight_1"
    random = const_fold.split_const_subgraphs(Folding(0.5))
    assert [node.name for node in random.graph.nodes if node.op == "call_function"] == ["dropout", "add"]


# -- fusion

def with_norm(layer, norm, size):
    torch.manual_seed(0)
    model = nn.Sequential(layer, norm, nn.Dropout(0.5))
    model(torch.randn(*size))  # sets the running statistics
    return model.eval(), torch.randn(*size)


FUSED = {
    "Conv1d": (lambda: (nn.Conv1d(2, 3, 2), nn.BatchNorm1d(3)), (4, 2, 5)),
    "Conv2d": (lambda: (nn.Conv2d(2, 3, 2), nn.BatchNorm2d(3)), (4, 2, 5, 5)),
    "Conv2d without bias": (lambda: (nn.Conv2d(2, 4, 2, groups=2, bias=False), nn.BatchNorm2d(4, affine=False)), (4, 2, 5, 5)),
    "Conv3d": (lambda: (nn.Conv3d(1, 2, 2), nn.BatchNorm3d(2)), (3, 1, 3, 3, 3)),
    "Linear": (lambda: (nn.Linear(3, 4), nn.BatchNorm1d(4)), (5, 3)),
}


@pytest.mark.parametrize(("make", "size"), FUSED.values(), ids=FUSED)
def test_batch_norms_are_fused(make, size):
    layer, norm = make()
    model, x = with_norm(layer, norm, size)
    expected = model(x).detach().numpy()
    fused = optimization.fuse(model)
    assert [type(module) for module in fused.children()] == [type(layer), nn.Dropout]
    np.testing.assert_allclose(fused(x).detach().numpy(), expected, rtol=1e-5, atol=1e-6)
    smaller = optimization.optimize_for_inference(model)
    assert [type(module) for module in smaller.children()] == [type(layer)]
    np.testing.assert_allclose(smaller(x).detach().numpy(), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(model(x).detach().numpy(), expected)


class Unfusable(nn.Module):
    def __init__(self, track):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2, track_running_stats=track)

    def forward(self, x):
        y = self.conv(x)
        return self.norm(y) + (y if self.norm.track_running_stats else 0)


@pytest.mark.parametrize("track", [True, False])
def test_batch_norms_that_cannot_be_fused_are_left(track):
    fused = optimization.fuse(Unfusable(track).eval())
    assert [name for name, _ in fused.named_children()] == ["conv", "norm"]


def test_optimizations_that_do_not_exist_are_refused():
    with pytest.raises(NotImplementedError, match="mkldnn_layout_optimize"):
        optimization.optimize_for_inference(nn.ReLU(), {"mkldnn_layout_optimize": {}})
    with pytest.raises(NotImplementedError, match="reinplace"):
        fx.passes.reinplace.reinplace(fx.symbolic_trace(abs_of))


# -- managers and order

def negate(module):
    for node in module.graph.find_nodes(op="call_function", target=operator.add):
        node.target = operator.sub


def double(module):
    node = module.graph.output_node()
    with module.graph.inserting_before(node):
        node.args = (module.graph.call_function(operator.mul, (node.args[0], 2)),)


def test_passes_are_ordered_and_run():
    first, second = manager.pass_result_wrapper(negate), manager.pass_result_wrapper(double)
    passes = manager.PassManager([second, first], [manager.this_before_that_pass_constraint(first, second)])
    result = passes(fx.symbolic_trace(lambda x: x + 1))
    assert passes.passes == [first, second]
    assert result.modified and result.graph_module(5) == 8
    passes.add_checks(lambda module: module.graph.lint())
    with pytest.raises(TypeError, match="one variable"):
        passes.add_checks(lambda: None)
    circular = [manager.this_before_that_pass_constraint(*pair) for pair in ((first, second), (second, first))]
    with pytest.raises(RuntimeError, match="Circular dependency"):
        manager.PassManager([first, second], circular).solve_constraints()
    with pytest.raises(RuntimeError, match="pass schedule constraint violated"):
        manager.PassManager([second, first], circular[:1]).validate_constraints()
    with pytest.raises(Exception, match="An error occurred when running the 'negate' pass"):
        manager.PassManager([negate])(fx.symbolic_trace(abs_of))
    plain = plain_manager.PassManager([plain_manager.inplace_wrapper(negate), plain_manager.inplace_wrapper(double)])
    plain.add_constraint(plain_manager.these_before_those_pass_constraint(negate, double))
    traced = plain(fx.symbolic_trace(lambda x: x + 1))
    traced.recompile()
    assert traced(5) == 8
    assert plain_manager.loop_pass(lambda n: n + 1, n_iter=3)(0) == 3
    assert plain_manager.loop_pass(lambda n: n + 1, predicate=lambda n: n < 5)(0) == 5


def test_a_pass_checks_the_module():
    class Checked(pass_base.PassBase):
        def requires(self, module):
            if not module.graph.find_nodes(op="call_function", target=operator.abs):
                raise ValueError("nothing to do")

        def call(self, module):
            return pass_base.PassResult(module, False)

    assert Checked()(fx.symbolic_trace(abs_of)).modified is False
    with pytest.raises(ValueError, match="nothing to do"):
        Checked()(fx.symbolic_trace(lambda x: -x))


@pytest.mark.parametrize("sort", [tools_common.legalize_graph, tools_common.stable_topological_sort])
def test_graphs_are_sorted(sort):
    traced = fx.symbolic_trace(lambda x: -(x + 1) * 2)
    add, neg = list(traced.graph.nodes)[1:3]
    neg.append(add)
    with pytest.raises(RuntimeError):
        traced.graph.lint()
    sort(traced).graph.lint()
    assert traced(3) == -8


# -- minimizers

class Minimizer(net_min_base._MinimizerBase):
    """Runs sigmoid wrongly in the second way."""

    def run_a(self, mod, inputs, report_idx=-1):
        return mod(*inputs)

    def run_b(self, mod, inputs, report_idx=-1):
        wrong = copy.deepcopy(mod)
        for node in wrong.graph.find_nodes(op="call_method", target="sigmoid"):
            node.target = "tanh"
        wrong.recompile()
        return wrong(*inputs)


def several(x):
    return (x + 1).relu().sigmoid().exp() * 2


def agree(a, b, names):
    difference = float((a - b).abs().max())
    return difference, difference < 1e-4


@pytest.mark.parametrize(
    ("method", "options", "culprits"),
    [
        ("sequential", {}, {"sigmoid"}), ("binary", {}, {"sigmoid"}), ("accumulate", {}, {"sigmoid"}),
        ("block", {}, {"sigmoid"}), ("block", {"find_last_node": True}, {"add", "relu", "sigmoid"}),
        ("skip", {"skip_nodes": ["sigmoid"]}, set()), ("skip", {"skip_nodes": ["relu"]}, {"sigmoid", "exp", "mul"}),
        ("defined", {"start": "relu", "end": "exp"}, {"relu", "sigmoid", "exp"}), ("defined", {"end": "relu"}, set()),
    ],
)  # fmt: skip
def test_minimizers_find_the_culprit(method, options, culprits, capsys):
    settings = net_min_base._MinimizerSettingBase(traverse_method=method)
    made = Minimizer(fx.symbolic_trace(several), (torch.randn(3),), agree, settings)
    assert {node.name for node in made.minimize(**options)} == culprits
    assert "FX Minimizer Settings" in capsys.readouterr().out


def test_errors_of_minimizers(capsys):
    made = Minimizer(fx.symbolic_trace(several), (torch.randn(3),), agree, net_min_base._MinimizerSettingBase(traverse_method="x"))
    with pytest.raises(RuntimeError, match="Unknown traverse method x!"):
        made.minimize()
    made.run_nodes("relu", "exp")
    assert "Result mismatch" in capsys.readouterr().out
    with pytest.raises(AssertionError, match="does not match sample_input count"):
        Minimizer(fx.symbolic_trace(lambda x, y=1: x.relu()), (torch.randn(3),), agree, made.settings)


def test_the_example_runs(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["fx_fuse.py"])
    runpy.run_path(str(ROOT / "examples/fx_fuse.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "15 calls before fusion, 11 after it" in printed and "2 patterns replaced" in printed


def test_calls_are_written_in_one_form():
    def f(x):
        return nn.functional.elu(torch.add(x, x) / torch.div(x, 2, rounding_mode="floor"), 2.0)

    traced, x = fx.symbolic_trace(f), torch.tensor([3.0, 5.0])
    shape_prop.ShapeProp(traced).propagate(x)
    arguments = normalize.NormalizeArgs(traced).transform()
    calls = {node.name: (node.args, node.kwargs) for node in arguments.graph.nodes if node.op == "call_function"}
    assert calls["elu"][0] == () and list(calls["elu"][1]) == ["input", "alpha", "inplace"]
    assert list(calls["add"][1]) == ["input", "other", "alpha"]
    operators = normalize.NormalizeOperators(traced).transform()
    targets = [node.target for node in operators.graph.nodes if node.op == "call_function"]
    assert targets == [operator.add, torch.div, operator.truediv, nn.functional.elu]
    assert f(x).tolist() == arguments(x).tolist() == operators(x).tolist()
    module = normalize.NormalizeArgs(fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2)))).transform()
    assert list(module.graph.find_nodes(op="call_module")[0].kwargs) == ["input"]
