"""Uses of torch.fx whose results are texts and numbers, run with both libraries: see record.py and test_texts.py."""

from __future__ import annotations

import copy
import operator
from collections import namedtuple
from types import ModuleType
from typing import Any

Point = namedtuple("Point", "x y")


def error(call: Any, lines: int = 1) -> str:
    """The type and the first lines of the error that a call raises."""
    try:
        call()
    except Exception as e:  # noqa: BLE001 - any error is a result
        return f"{type(e).__name__}: " + "\n".join(str(e).split("\n")[:lines])
    return "no error"


def net(torch: ModuleType) -> Any:
    nn = torch.nn

    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(4, 4)
            self.register_buffer("scale", torch.ones(4))

        def forward(self, x):
            return torch.relu(self.lin(x)) * self.scale

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = Inner(), Inner()
            self.weight = nn.Parameter(torch.ones(4))

        def forward(self, x):
            y = self.first(x) + self.weight
            return self.second(y) + x, y.sum(dim=-1)

    return Net()


def case_split_module(torch):
    from importlib import import_module

    split = import_module(f"{torch.__name__}.fx.passes.split_module").split_module
    found = []
    for options in ({}, {"keep_original_order": True}, {"keep_original_node_name": True}, {"tuple_return": True},
                    {"partition_affix": "part", "keep_original_input_name": False}):  # fmt: skip
        traced = torch.fx.symbolic_trace(net(torch))
        names = {}
        result = split(traced, traced, lambda n: n.name if "lin" in n.name or n.name == "sum_1" else n.name[-2:], names, **options)
        found += [result.code, names, sorted(result.meta["partition_names"])]
        found += [child.code for _, child in sorted(result.named_children()) if hasattr(child, "code")]
    return found


def case_split_by_tags(torch):
    from importlib import import_module

    utils = import_module(f"{torch.__name__}.fx.passes.split_utils")
    traced = torch.fx.symbolic_trace(net(torch))
    for node in traced.graph.nodes:
        if node.op.startswith("call"):
            node.tag = "a" if node.name in ("first_lin", "relu", "mul") else "b"
    result, names = utils.split_by_tags(traced, ["a", "b"], return_fqn_mapping=True)
    return result.code, result.a.code, result.b.code, names


def case_replace_pattern(torch):
    found = []
    patterns = [
        (lambda a, b: torch.relu(a) * b, lambda a, b: torch.sigmoid(a) + b),
        (lambda a: torch.relu(a), lambda a: a.neg().clone()),
        (lambda a: a.sum(dim=-1), lambda a: a.mean(-1)),
        (lambda a, b: a + b, lambda a, b: torch.add(b, a)),
        (lambda a, b: a - b, lambda a, b: b),
    ]
    for pattern, replacement in patterns:
        traced = torch.fx.symbolic_trace(net(torch))
        matches = torch.fx.replace_pattern(traced, pattern, replacement)
        found.append((traced.code, [m.anchor.name for m in matches], [sorted(str(n) for n in m.nodes_map) for m in matches]))
    return found


def case_transformer(torch):
    class Swap(torch.fx.Transformer):
        def call_function(self, target, args, kwargs):
            return super().call_function(torch.sigmoid if target is torch.relu else target, args, kwargs)

        def call_method(self, target, args, kwargs):
            return super().call_method("mean" if target == "sum" else target, args, kwargs)

    traced = Swap(torch.fx.symbolic_trace(net(torch))).transform()
    sources = [source.name for node in traced.graph.nodes for source in node.meta.get("from_node", [])]
    return traced.code, sources


def case_formats(torch):
    graph = torch.fx.Graph()
    x = graph.placeholder("x", type_expr=int, default_value=3)
    a = graph.call_function(torch.add, (x, 1.5), {"alpha": 2}, type_expr=torch.Tensor)
    b = graph.create_node("call_method", "view", (a, (1, -1)), name="class")
    c = graph.call_function(max, ([a, b], {"k": slice(None, a, 2)}), name="x")
    d = graph.get_attr("a.b.0.c")
    e = graph.call_module("a.b.0", (d, torch.float32, torch.device("cpu"), None, ...))
    f = graph.call_function(getattr, (e, "shape"))
    g = graph.call_function(getattr, (e, "missing", 3))
    h = graph.call_function(Point, (f, g))
    out = graph.output((h, Point(f, 1), complex(1, 2), complex(0, 1), float("nan"), float("-inf"), -1.0, "text'", b, (c,)))
    code = graph.python_code("self")
    return [
        str(graph), code.src.replace("fx_cases", "cases"), sorted(name for name in code.globals if "oint" not in name),
        [n.format_node() for n in graph.nodes], out.all_input_nodes, x.next, out.prev, str(x.users),
    ]  # fmt: skip


def case_names(torch):
    graph = torch.fx.Graph()
    names = "x x x_1 x_5 x_5 x 1abc a.b for torch device list CamelCase __add__ a-c inf _".split()
    created = [graph.create_node("placeholder", name).name for name in [*names, "", "a b"]]
    created += [graph.call_method(name).name for name in ("__getitem__", "toDense", "ALL_CAPS", "x")]
    created += [graph.call_function(f).name for f in (operator.and_, operator.getitem, len, torch.cat, torch.nn.functional.relu)]
    node = graph.call_method("neg")
    node._rename("x")
    return created, node.name


def case_graph_errors(torch):
    fx = torch.fx
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(operator.neg, (x,))
    other = fx.Graph().placeholder("z")
    late = graph.call_function(operator.neg, (y,))
    found = [
        error(lambda: graph.erase_node(x)), error(lambda: graph.erase_node(other)), error(lambda: graph.inserting_before(other)),
        error(lambda: graph.create_node("bad", "x")), error(lambda: graph.create_node("call_method", "x", [1])),
        error(lambda: graph.output_node()), error(lambda: y.insert_arg(7, x)), error(lambda: y.args[0].args.append(1)),
        error(lambda: graph.find_nodes(op="call_function")), error(lambda: fx.GraphModule({}, 3)),
        error(lambda: fx.GraphModule(3, graph)), error(lambda: fx.map_arg(x, 3)), error(lambda: hash(fx.Graph)),
        error(lambda: fx.Interpreter(fx.GraphModule({}, graph)).run()), error(lambda: fx.wrap(3)),
        error(lambda: y.kwargs.update(a=1)), error(lambda: fx.Proxy(x)[0].node.args.append(1)),
    ]  # fmt: skip
    y.append(x)
    found.append(error(graph.lint))
    x.prepend(late)
    found += [error(graph.lint), str(graph)]
    late.args = (other,)
    return [*found, error(graph.lint)]


def case_trace_errors(torch):
    fx = torch.fx

    def branch(x):
        return x if x > 0 else -x

    def loop(x):
        return [y for y in x]

    def keys(x):
        return x.f({x: 1})

    def odd(x):
        return x.f(object())

    def constant(x):
        return x + torch.nn.Parameter(torch.ones(1))

    def several(x, *, y):
        return x + y

    def default(x, y=None):
        return x

    return [
        *(error(lambda f=f: fx.symbolic_trace(f)) for f in (branch, loop, keys, odd, constant)),
        error(lambda: fx.symbolic_trace(several)(1)), error(lambda: fx.symbolic_trace(several, concrete_args=(1, 2, 3))),
        error(lambda: fx.symbolic_trace(torch.nn.Linear(1, 1).forward)), error(lambda: fx.symbolic_trace(default, (2,))),
        error(lambda: fx.symbolic_trace(default, {"y": 3})(1, 4)), error(lambda: fx.symbolic_trace(default, {"y": None})(1, 4)),
    ]  # fmt: skip


def case_concrete_arguments(torch):
    PH = torch.fx.PH

    def f(x, flag, n=2):
        return x + n if flag else x

    def tree(d, *rest):
        return {"out": d["a"] + d["b"][0], "rest": rest}

    found = []
    for function, concrete in (
        (f, {"flag": True}), (f, {"flag": False, "n": 3}), (f, (PH, True, 5)), (tree, {"d": {"a": PH, "b": [PH, 1]}}),
    ):  # fmt: skip
        traced = torch.fx.symbolic_trace(function, concrete_args=concrete)
        found += [traced.code, str(traced.graph)]
    return found


def case_leaf_modules(torch):
    class Opaque(torch.fx.Tracer):
        def is_leaf_module(self, m, qualified_name):
            return qualified_name.startswith("second") or "lin" in qualified_name

    tracer = Opaque()
    graph = tracer.trace(net(torch))
    stacks = {n.name: list(n.meta.get("nn_module_stack", {})) for n in graph.nodes}
    scopes = {name: (path, getattr(kind, "__name__", None)) for name, (path, kind) in tracer.node_name_to_scope.items()}
    return str(graph), stacks, scopes, tracer.path_of_module(tracer.root.first.lin)


def case_buffers_and_shapes(torch):
    class Buffers(torch.fx.Tracer):
        proxy_buffer_attributes = True

    class Sized(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(3, 2))

        def forward(self, x):
            return x * 2 if self.w.shape[0] > 2 and self.w.dim() == 2 else x

    sized = torch.fx.Tracer(param_shapes_constant=True).trace(Sized())
    return str(Buffers().trace(net(torch))), str(torch.fx.Tracer().trace(net(torch))), str(sized)


def case_dead_code(torch):
    def f(x):
        a = x + 1
        _ = a * 2
        torch._assert(x.sum() > 0, "positive")
        return a

    traced = torch.fx.symbolic_trace(f)
    changed = traced.graph.eliminate_dead_code()
    return changed, str(traced.graph), traced.graph.eliminate_dead_code(), str(copy.deepcopy(traced.graph))


def case_submodules(torch):
    traced = torch.fx.symbolic_trace(net(torch))
    found = [
        traced.add_submodule("first.extra.deep", torch.nn.ReLU()), traced.add_submodule("weight.extra", torch.nn.ReLU()),
        traced.delete_submodule("first.extra.none"), traced.delete_submodule("first.lin"), traced.delete_submodule("first.lin"),
        [name for name, _ in traced.named_modules()],
    ]  # fmt: skip
    traced.delete_all_unused_submodules()
    return [*found, [name for name, _ in traced.named_modules()], error(traced.graph.lint), str(traced)]


def case_interpreter(torch):
    fx = torch.fx
    seen = []

    class Seen(fx.Interpreter):
        def run_node(self, n):
            result = super().run_node(n)
            seen.append((n.name, sorted(str(k) for k in self.env)))
            return result

    def f(x, y=3, *rest):
        z = x + y
        return z * x, rest

    traced = fx.symbolic_trace(f)
    found = [Seen(traced).run(1), Seen(traced, garbage_collect_values=False).run(1, 2, 3, 4), seen]
    nodes = list(traced.graph.nodes)
    found += [fx.Interpreter(traced).run(1, initial_env={nodes[3]: 10}), fx.Interpreter(traced).boxed_run([1, 2, [3]])]
    return [*found, error(lambda: fx.Interpreter(traced).boxed_run([])), error(lambda: fx.Interpreter(traced).run())]


def case_readable(torch):
    from importlib import import_module

    traced = torch.fx.symbolic_trace(net(torch))
    import_module(f"{torch.__name__}.fx.passes.shape_prop").ShapeProp(traced).propagate(torch.ones(2, 4))
    nodes = list(traced.graph.nodes)
    nodes[1].stack_trace = 'File "a.py", line 3, in forward\n    y = self.first(x)'
    nodes[2].stack_trace = nodes[1].stack_trace
    nodes[3].meta["custom"] = {"region": "a" * 50}
    nodes[0].meta["desc"] = "the input"
    meta = {n.name: tuple(map(str, n.meta["tensor_meta"])) for n in nodes if n.op != "output"}
    options = (
        {}, {"include_stride": True, "include_device": True}, {"colored": True}, {"expanded_def": True},
        {"additional_meta": ["type"]},
    )  # fmt: skip
    return [traced.print_readable(print_output=False, **o).replace("teletensor", "torch") for o in options], meta


def case_traceback(torch):
    from importlib import import_module

    trace = import_module(f"{torch.__name__}.fx.traceback")
    fx = torch.fx

    def f(x):
        with trace.annotate({"a": 1}), trace.annotate({"b": 2}):
            return x + 1

    with trace.preserve_node_meta():
        traced = fx.symbolic_trace(f)
    node = list(traced.graph.nodes)[1]
    source = trace.NodeSource(node, "pass", [trace.NodeSourceAction.CREATE, trace.NodeSourceAction.REPLACE])
    text = source.print_readable().split("graph_id")[0]
    return node.meta.get("custom"), text, source == trace.NodeSource._from_dict(source.to_dict()), trace.has_preserved_node_meta()


def case_matcher(torch):
    from importlib import import_module

    utils = import_module(f"{torch.__name__}.fx.passes.utils.matcher_utils")
    traced = torch.fx.symbolic_trace(net(torch))
    found = []
    for pattern, options in (
        (lambda a, b: torch.relu(a) * b, {}), (lambda a: torch.relu(a), {"remove_overlapping_matches": False}),
        (lambda a: a.sum(dim=0), {"ignore_literals": True}), (lambda a: a.sum(dim=0), {}), (lambda a, b: (a + b, a), {}),
    ):  # fmt: skip
        matches = utils.SubgraphMatcher(torch.fx.symbolic_trace(pattern).graph, **options).match(traced.graph)
        found.append([(m.placeholder_nodes, m.returning_nodes, sorted(map(str, m.nodes_map.values()))) for m in matches])
    return found


def case_partitioner(torch):
    from importlib import import_module

    passes = f"{torch.__name__}.fx.passes"
    support = import_module(f"{passes}.operator_support")
    partitioner = import_module(f"{passes}.infra.partitioner")
    found = []
    for targets in ((torch.relu, operator.mul, operator.add), (operator.add, torch.relu), (torch.relu, operator.mul)):
        traced = torch.fx.symbolic_trace(net(torch))
        supported = support.create_op_support(lambda _, node: node.target in targets)
        made = partitioner.CapabilityBasedPartitioner(traced, supported)
        partitions = made.propose_partitions()
        found.append(sorted(sorted(str(n) for n in p.nodes) for p in partitions))
    return found


def case_const_fold(torch):
    from importlib import import_module

    fold = import_module(f"{torch.__name__}.fx.experimental.const_fold")

    class Constants(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))

        def forward(self, x):
            c = self.a * 2 + self.b
            return x + c - self.b, self.a + 1

    result = fold.split_const_subgraphs(Constants())
    return [n.target if isinstance(n.target, str) else n.target.__name__ for n in result.graph.nodes if n.op != "get_attr"]


def case_pytree_code(torch):
    def f(table, pair):
        return {"sum": pair[0] + table["b"], "rest": [pair[1], (table["a"],)]}

    PH = torch.fx.PH
    traced = torch.fx.symbolic_trace(f, concrete_args={"pair": (PH, PH), "table": {"a": PH, "b": PH}})
    again, args = torch.fx.Transformer(traced).transform(), ({"a": 3, "b": 4}, (1, 2))
    return traced.code, traced(*args), again(*args), copy.deepcopy(traced)(*args), torch.fx.Interpreter(traced).run(*args)


def case_proxies(torch):
    fx = torch.fx
    graph = fx.Graph()
    p = fx.Proxy(graph.placeholder("p"))
    q = p.attr
    made = [p + 1, 1 + p, p[0], -p, ~p, p @ p, 2**p, p(3), p.method(1, k=p), q.deep.more(2), p == 1, abs(p), p // 2, 3 % p, p & 1, 1 << p]
    graph.output([m.node for m in made])
    return repr(p), repr(q), str(graph), error(lambda: len(p)), error(lambda: bool(p)), error(lambda: [*p])


def case_schemas(torch):
    from importlib import import_module

    schemas = import_module(f"{torch.__name__}.fx.operator_schemas")
    functional = torch.nn.functional
    traced = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 2)))
    linear = list(traced.graph.nodes)[1]
    return [
        schemas.normalize_function(torch.relu, ("x",)), schemas.normalize_function(functional.elu, ("x",), {"alpha": 2.0}),
        schemas.normalize_function(functional.elu, ("x",), normalize_to_only_use_kwargs=True),
        linear.normalized_arguments(traced, normalize_to_only_use_kwargs=True), schemas.create_type_hint([int, bool]),
        schemas.create_type_hint((int, str)), schemas.create_type_hint([]), schemas.type_matches(int, bool),
        schemas.type_matches(list[int], int), schemas.type_matches(float, str),
        error(lambda: schemas.check_for_mutable_operation(torch.relu_, ("x",), {})).split(" ")[0],
    ]  # fmt: skip


def case_shape_and_manipulation(torch):
    from importlib import import_module

    passes = f"{torch.__name__}.fx.passes"
    shape, manipulation = import_module(f"{passes}.shape_prop"), import_module(f"{passes}.graph_manipulation")
    tools = import_module(f"{passes}.tools_common")
    traced = torch.fx.symbolic_trace(net(torch))
    shape.ShapeProp(traced).propagate(torch.ones(2, 4))
    manipulation.get_size_of_all_nodes(traced)
    sizes = {node.name: tuple(node.size_bytes) for node in traced.graph.nodes if node.op != "output"}
    kinds = {n.name: tools.get_node_target(dict(traced.named_modules()), n) for n in traced.graph.nodes if n.op[:4] == "call"}
    manipulation.replace_target_nodes_with(traced, "call_function", torch.relu, "call_method", "tanh")
    tensors = {node.name: tools.is_node_output_tensor(node) for node in traced.graph.nodes}
    return sizes, kinds, traced.code, tensors, str(tools.legalize_graph(traced).graph)



def case_graph_copies(torch):
    graph = torch.fx.symbolic_trace(net(torch)).graph
    joined = torch.fx.Graph()
    x = joined.placeholder("data")
    first = joined.graph_copy(graph, {next(iter(graph.nodes)): x})
    value, node = joined.graph_copy(graph, {next(iter(graph.nodes)): first[0]}, return_output_node=True)
    joined.output(value, type_expr=tuple)
    found = [str(joined), node.name, joined.python_code("self").src, len(joined.nodes)]
    joined.output_node().args = (x,)
    joined.eliminate_dead_code(lambda n: n.op in ("placeholder", "output"))
    return [*found, str(joined), str(copy.deepcopy(joined))]


def case_replace_uses(torch):
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    a, b = graph.call_method("a", (x, [x, {"k": x}])), graph.call_method("b", (x,), {"k": slice(x, 1)})
    with graph.inserting_after(x):
        new = graph.call_method("new", (x,))
    found = [x.replace_all_uses_with(new, delete_user_cb=lambda user: user is not new), str(graph)]
    b.replace_input_with(new, a)
    new.meta["m"] = 1
    found += [str(graph), list(new.users), a.all_input_nodes, error(lambda: a.replace_all_uses_with(new, propagate_meta=True))]
    b.update_kwarg("j", new)
    b.update_arg(0, (new, new))
    b.insert_arg(1, 5)
    a.append(x)
    x.prepend(new)
    return [*found, str(graph), [n.name for n in reversed(graph.nodes)], sorted(graph.nodes), x < a, error(graph.lint)]


def case_transformed_code(torch):
    traced = torch.fx.symbolic_trace(lambda x: x + 1)
    with traced.graph.on_generate_code(lambda before: lambda body: ["print(x)\n", *body]):
        traced.recompile()
        inside = traced.code
    traced.recompile()

    class Renamed(torch.fx.CodeGen):
        def gen_fn_def(self, free_vars, maybe_return_annotation):
            return super().gen_fn_def([*free_vars, "*, more=1"], maybe_return_annotation)

        def generate_output(self, output_args):
            return f"return ({output_args}, more, seven)"

        def additional_globals(self):
            return [("seven", 7)]

    outside = traced.code
    traced.graph.set_codegen(Renamed())
    code = traced.recompile()
    return inside, outside, code.src, traced(1, more=2), code._lineno_map, code._prologue_start


def case_trees_of_named_results(torch):
    from importlib import import_module

    pytree = import_module(f"{torch.__name__}.utils._pytree")
    result = torch.arange(6.0).reshape(2, 3).max(dim=1)
    doubled = pytree.tree_map(lambda leaf: leaf * 2, {"a": result})["a"]
    leaves, spec = pytree.tree_flatten([result, 1])
    return [
        len(leaves), str(spec), doubled.values.tolist(), type(doubled).__name__, spec.unflatten(leaves)[0].indices.tolist(),
        [pytree.keystr(path) for path, _ in pytree.tree_leaves_with_path(result)],
    ]  # fmt: skip


def case_operators(torch):
    aten = torch.ops.aten

    def f(x):
        x = aten.cat([aten.add.Tensor(x, aten.sigmoid(x)), x])
        aten.add_.Tensor(x, 1)
        aten.neg.default(x)
        return x

    traced = torch.fx.symbolic_trace(f)
    before, changed = str(traced.graph), traced.graph.eliminate_dead_code()
    traced.recompile()
    return before, traced.code, changed, traced(torch.zeros(2))


def case_recorded_ranges(torch):
    """Generated code that records ranges: its text, the metadata of its nodes, and the ranges in a profile."""
    from importlib import import_module

    module = lambda name: import_module(f"{torch.__name__}.{name}")  # noqa: E731
    config, registry, profiler = module("fx.experimental._config"), module("fx.traceback")._FX_METADATA_REGISTRY, module("profiler")
    traced = torch.fx.symbolic_trace(net(torch))
    found = [traced.graph.python_code("self", record_func=True).src, traced.code]
    config.enrich_profiler_metadata = True
    try:
        traced.recompile()
    finally:
        config.enrich_profiler_metadata = False
    name = traced.forward.__code__.co_filename
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU]) as profile:
        traced(torch.ones(2, 4))
    metadata = copy.deepcopy(registry[name])
    for node in metadata["node_metadata"].values():
        del node["target"]  # the texts of functions are each library's
    ranges = sorted({event.name for event in profile.events() if event.name.startswith("## ")})
    found += [metadata, [text.replace(name, "FILE") for text in [traced.code, *ranges]]]
    traced.recompile()
    return [*found, len(name), name.startswith("fx_generated__"), "_rf" in traced.code]
