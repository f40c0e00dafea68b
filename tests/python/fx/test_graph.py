"""Graphs and nodes: changes, and what they refuse."""

from __future__ import annotations

import copy
import operator
import random

import pytest

import teletensor as torch
from teletensor import fx, nn
from teletensor.fx import immutable_collections


def chain():
    """x -> a = x + 1 -> b = a * x -> output, by name."""
    graph = fx.Graph()
    x = graph.placeholder("x")
    a = graph.call_function(operator.add, (x, 1))
    b = graph.call_function(operator.mul, (a, x))
    return graph, {"x": x, "a": a, "b": b, "output": graph.output(b)}


def order(graph):
    return " ".join(node.name for node in graph.nodes)


def run(graph, *args):
    graph.lint()
    return fx.GraphModule({}, graph)(*args)


def insert_before(graph, n):
    with graph.inserting_before(n["b"]):
        n["b"].update_arg(1, graph.call_function(operator.neg, (n["x"],)))


def insert_after(graph, n):
    with graph.inserting_after(n["x"]):
        new = graph.call_function(operator.neg, (n["x"],))
        n["x"].replace_all_uses_with(new, delete_user_cb=lambda user: user is not new)


def insert_at_start(graph, n):
    with graph.inserting_before():
        graph.placeholder("first")


def insert_at_end(graph, n):
    with graph.inserting_before(n["b"]), graph.inserting_after():
        graph.call_function(operator.neg, (n["b"],), name="last")


def move(graph, n):
    c = graph.call_function(operator.neg, (n["x"],), name="c")
    n["a"].prepend(c)
    n["b"].append(n["a"])
    n["b"].replace_input_with(n["a"], c)


def erase(graph, n):
    n["a"].replace_all_uses_with(n["x"])
    graph.erase_node(n["a"])


def keywords(graph, n):
    n["a"].target, n["a"].args = pow, (n["x"],)
    n["a"].update_kwarg("exp", 3)
    n["b"].insert_arg(0, 5)
    n["b"].args = n["b"].args[:2]


# change, order afterwards, result for 2, users of x afterwards
CHANGES = [
    (insert_before, "x add neg mul output", -6, "add neg"),
    (insert_after, "x neg add mul output", 2, "neg"),
    (insert_at_start, "first x add mul output", None, "add mul"),
    (insert_at_end, "x add mul output last", 6, "add mul"),
    (move, "x c mul add output", -4, "add mul c"),
    (erase, "x mul output", 4, "mul"),
]


@pytest.mark.parametrize(("change", "names", "result", "users"), CHANGES, ids=lambda v: getattr(v, "__name__", ""))
def test_changes(change, names, result, users):
    graph, nodes = chain()
    change(graph, nodes)
    assert order(graph) == names
    assert [node.name for node in reversed(graph.nodes)] == names.split()[::-1]
    assert len(graph.nodes) == len(names.split())
    assert sorted(node.name for node in nodes["x"].users) == sorted(users.split())
    assert sorted(graph.nodes) == list(graph.nodes)
    if result is not None:
        assert run(graph, 2) == result


def test_arguments_are_changed_by_setters():
    graph, n = chain()
    keywords(graph, n)
    assert n["a"].kwargs == {"exp": 3}
    assert n["b"].args == (5, n["a"])
    assert n["x"].users == {n["a"]: None}
    assert n["b"].all_input_nodes == [n["a"]]
    assert run(graph, 2) == 40


def test_positions_stay_ordered_after_many_insertions():
    graph, n = chain()
    chosen = random.Random(0)
    nodes = [n["x"]]
    for _ in range(2000):
        with graph.inserting_after(n["x"]):  # always at the same place, so that the numbers of neighbouring positions become adjacent
            nodes.append(graph.call_function(operator.neg, (n["x"],)))
    for node in chosen.sample(nodes[1:], 200):
        chosen.choice(nodes[1:]).append(node)
    assert sorted(graph.nodes) == list(graph.nodes)
    assert graph.find_nodes(op="call_function", target=operator.neg) == [m for m in graph.nodes if m.target is operator.neg]


def test_nodes_can_be_erased_and_added_while_they_are_iterated():
    graph = fx.Graph()
    x = graph.placeholder("x")
    for _ in range(5):
        graph.call_function(operator.neg, (x,))
    seen = []
    for node in graph.nodes:
        seen.append(node.name)
        if node.name in ("neg_1", "neg_3"):
            graph.erase_node(node)
        if node.name == "neg_2":
            with graph.inserting_after(node):
                graph.call_function(operator.pos, (x,))
    assert seen == ["x", "neg", "neg_1", "neg_2", "pos", "neg_3", "neg_4"]
    assert order(graph) == "x neg neg_2 pos neg_4"


def test_find_nodes_follows_changes():
    graph, n = chain()
    n["a"].target = operator.mul
    assert graph.find_nodes(op="call_function", target=operator.mul) == [n["a"], n["b"]]
    assert graph.find_nodes(op="call_function", target=operator.add) == []
    n["b"].op, n["b"].target = "call_method", "mul"
    assert graph.find_nodes(op="call_method") == graph.find_nodes(op="call_method", target="mul") == [n["b"]]
    assert graph.output_node() is n["output"]


def test_copies_of_graphs_and_nodes():
    graph, n = chain()
    n["a"].meta["key"] = "value"
    copied = copy.deepcopy(graph)
    assert str(copied) == str(graph)
    assert copied.find_nodes(op="call_function", target=operator.add)[0].meta == {"key": "value"}
    joined = fx.Graph()
    y = joined.placeholder("y")
    first = joined.graph_copy(graph, {n["x"]: y})
    second = joined.graph_copy(graph, {n["x"]: first})
    joined.output((first, second))
    assert order(joined) == "y add mul add_1 mul_1 output"
    assert run(joined, 2) == (6, 42)


def dead(kind):
    graph = fx.Graph()
    x = graph.placeholder("x")
    made = {
        "function": lambda: graph.call_function(operator.neg, (graph.call_function(operator.add, (x, 1)),)),
        "method": lambda: graph.call_method("relu", (x,)),
        "in-place method": lambda: graph.call_method("add_", (x, 1)),
        "in-place function": lambda: graph.call_function(torch.relu_, (x,)),
        "out": lambda: graph.call_function(torch.add, (x, 1), {"out": x}),
        "assignment": lambda: graph.call_function(operator.setitem, (x, 0, 1)),
        "in-place operator": lambda: graph.call_function(operator.iadd, (x, 1)),
        "random function": lambda: graph.call_function(torch.rand, ((2,),)),
        "registered": lambda: graph.call_function(registered, (x,)),
    }
    made[kind]()
    graph.output(x)
    return graph


@fx.has_side_effect
def registered(x):
    return x


@pytest.mark.parametrize(
    ("kind", "left"),
    [
        ("function", 2), ("method", 2), ("in-place method", 3), ("in-place function", 3), ("out", 3), ("assignment", 3),
        ("in-place operator", 3), ("random function", 3), ("registered", 3),
    ],
)  # fmt: skip
def test_dead_code(kind, left):
    graph = dead(kind)
    before = len(graph.nodes)
    assert graph.eliminate_dead_code() == (before != left)
    assert len(graph.nodes) == left
    graph.eliminate_dead_code(lambda node: node.op in ("placeholder", "output"))
    assert len(graph.nodes) == 2


def test_unused_modules_are_dead_unless_they_are_in_place():
    root = nn.Module()
    root.relu, root.inplace = nn.ReLU(), nn.ReLU(inplace=True)
    graph = fx.Graph()
    x = graph.placeholder("x")
    for name in ("relu", "inplace"):
        graph.call_module(name, (x,))
    graph.output(x)
    module = fx.GraphModule(root, graph)
    module.graph.eliminate_dead_code()
    assert order(module.graph) == "x inplace output"


def test_hooks_see_changes():
    module = fx.GraphModule({}, chain()[0])
    seen = []
    module._register_create_node_hook(lambda node: seen.append(("create", node.name)))
    module._register_erase_node_hook(lambda node: seen.append(("erase", node.name)))
    a, b = list(module.graph.nodes)[1:3]
    with module._set_replace_hook(lambda old, new, user: seen.append(("replace", old.name, new, user.name))):
        with module.graph.inserting_after(a):
            new = module.graph.call_function(operator.neg, (a,))
        a.replace_all_uses_with(new, delete_user_cb=lambda user: user is b)
        b.name = "renamed"
    module.graph.erase_node(module.graph.call_function(operator.neg, (b,)))
    assert seen == [
        ("create", "neg"), ("replace", "add", "neg", "mul"), ("replace", "mul", "renamed", "output"), ("create", "neg_1"),
        ("erase", "neg_1"),
    ]  # fmt: skip


def test_code_can_be_transformed():
    module = fx.GraphModule({}, chain()[0])
    with module.graph.on_generate_code(lambda before: lambda body: ["x = 10\n", *(before(body) if before else body)]):
        module.recompile()
        assert module(2) == 110
    module.recompile()
    assert module(2) == 6

    class Renamed(fx.CodeGen):
        def gen_fn_def(self, free_vars, maybe_return_annotation):
            return super().gen_fn_def([*free_vars, "*, factor"], maybe_return_annotation)

        def generate_output(self, output_args):
            return f"return {output_args!r} * factor"

        def additional_globals(self):
            return [("seven", 7)]

    module.graph.set_codegen(Renamed())
    module.recompile()
    assert module(2, factor=2) == 12


def test_submodules_are_added_and_deleted():
    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    assert traced.add_submodule("a.b", nn.ReLU())
    assert isinstance(traced.a.b, nn.ReLU)
    assert not traced.add_submodule("code.b", nn.ReLU())
    assert traced.delete_submodule("a.b") and not traced.delete_submodule("a.b") and not traced.delete_submodule("x.y")
    traced.delete_all_unused_submodules()
    assert [name for name, _ in traced.named_modules()] == ["", "0", "1"]


def test_formats_of_nodes():
    graph, n = chain()
    n["x"].type = int
    assert n["x"].format_node() == "%x : int [num_users=2] = placeholder[target=x]"
    n["a"].meta["val"] = torch.ones(2, 3)
    text = "[num_users=1] = call_function[target=operator.add](args = (%x, 1), kwargs = {})"
    assert n["a"].format_node() == f"%add : {text}"
    assert n["a"].format_node(include_tensor_metadata=True) == f'%add : Tensor "f32[2, 3][3, 1]cpu"{text}'
    assert "\033[31mf32" in fx.GraphModule({}, graph).print_readable(print_output=False, colored=True)


def test_arguments_are_matched_to_signatures():
    root = nn.Sequential(nn.Linear(2, 2))
    traced = fx.symbolic_trace(root)
    linear = traced.graph.find_nodes(op="call_module")[0]
    x = traced.graph.find_nodes(op="placeholder")[0]
    pair = linear.normalized_arguments(traced, normalize_to_only_use_kwargs=True)
    assert (pair.args, pair.kwargs) == ((), {"input": x})
    with traced.graph.inserting_before(linear):
        added = traced.graph.call_function(torch.add, (x, 1))
        pooled = traced.graph.call_function(nn.functional.elu, (x,), {"alpha": 2.0})
    assert added.normalized_arguments(traced).kwargs == {"alpha": 1}
    pair = pooled.normalized_arguments(traced)
    assert pair.args == (x,) and pair.kwargs == {"alpha": 2.0, "inplace": False}


# container, what changes it
FROZEN = [
    (immutable_collections.immutable_list([1]), lambda c: c.append(1)),
    (immutable_collections.immutable_list([1]), lambda c: c.__setitem__(0, 1)),
    (immutable_collections.immutable_dict(a=1), lambda c: c.update(b=1)),
    (immutable_collections.immutable_dict(a=1), lambda c: c.pop("a")),
]


@pytest.mark.parametrize(("container", "change"), FROZEN)
def test_arguments_cannot_be_changed_in_place(container, change):
    with pytest.raises(TypeError, match="does not support mutation"):
        change(container)
    assert copy.copy(container) == container
    assert isinstance(hash(container), int)


def test_nested_arguments_are_frozen_and_counted():
    graph = fx.Graph()
    x = graph.placeholder("x")
    node = graph.call_function(max, ([x, {"a": (x, [1])}], slice(x, None)))
    assert type(node.args[0]) is immutable_collections.immutable_list
    assert type(node.args[0][1]) is immutable_collections.immutable_dict
    assert node.args[1].start is x
    assert x.users == {node: None}


def misplaced():
    graph, n = chain()
    n["b"].append(n["x"])
    return graph.lint()


def mixed():
    graph, n = chain()
    n["b"].args = (chain()[1]["x"], 1)
    return graph.lint()


def without_module():
    graph = fx.Graph()
    graph.call_module("absent", ())
    fx.GraphModule(nn.Module(), graph)


def lint_missing(op):
    graph = fx.Graph(owning_module=nn.Module())
    graph.create_node(op, "a.b")
    graph.lint()


ERRORS = [
    (lambda: chain()[0].erase_node(next(iter(chain()[0].nodes))), RuntimeError, "Tried to erase Node x but it still had 2 users"),
    (lambda: chain()[0].erase_node(chain()[1]["output"]), RuntimeError, "Attempting to remove output from wrong graph!"),
    (misplaced, RuntimeError, "Argument 'x' of Node 'add' was used before it has been defined!"),
    (mixed, RuntimeError, "Argument 'x' of Node 'mul' does not belong to this Graph"),
    (lambda: lint_missing("call_module"), RuntimeError, "references nonexistent attribute a of"),
    (lambda: lint_missing("get_attr"), RuntimeError, "references nonexistent attribute a of"),
    (without_module, AttributeError, "absent"),
    (lambda: fx.Graph().create_node("call", "a"), AssertionError, "op 'call' is not in _legal_ops"),
    (lambda: fx.Graph().create_node("call_function", "a"), ValueError, "has type str but a Callable is expected"),
    (lambda: fx.Graph().create_node("call_method", abs), ValueError, "but a str is expected"),
    (lambda: fx.Graph().create_node("call_method", "a", [1]), AssertionError, "args must be a tuple"),
    (lambda: fx.Graph().create_node("call_method", "a", (), [1]), AssertionError, "kwargs must be a dict"),
    (lambda: chain()[0].inserting_before(chain()[1]["a"]), AssertionError, "Node to insert before is not in graph."),
    (lambda: chain()[0].inserting_after(chain()[1]["a"]), AssertionError, "Node to insert after is not in graph."),
    (lambda: chain()[1]["a"].prepend(chain()[1]["b"]), AssertionError, "Attempting to move a Node into a different Graph"),
    (lambda: chain()[1]["a"].insert_arg(3, 1), AssertionError, "insert_args index must be between 0 and len"),
    (lambda: fx.Graph().create_size_node(chain()[1]["x"], 0), NotImplementedError, "there are no symbolic sizes"),
    (lambda: fx.Graph().materialize_symints([1]), NotImplementedError, "there are no symbolic sizes"),
    (lambda: fx.Graph().find_nodes(op="call_function"), AssertionError, "target must not be None"),
    (lambda: fx.map_arg((), 3), AssertionError, "fn must be a callable"),
    (lambda: chain()[1]["a"].replace_all_uses_with(with_meta(), propagate_meta=True), AssertionError, "already has .meta keys"),
]  # fmt: skip


def with_meta():
    node = chain()[1]["x"]
    node.meta["a"] = 1
    return node


@pytest.mark.parametrize(("call", "kind", "text"), ERRORS, ids=lambda value: value if isinstance(value, str) else "")
def test_errors(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_references_that_do_not_exist_are_warned_of():
    module = fx.GraphModule({}, chain()[0])
    with pytest.warns(UserWarning, match="no underlying reference in the owning GraphModule"):
        module.graph.get_attr("weight")
    node = module.graph.call_function(operator.neg, (1,))
    module.graph.erase_node(node)
    with pytest.warns(UserWarning, match="already erased"):
        module.graph.erase_node(node)


def test_checks_are_not_dead_code(torch):
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.call_function(torch.ops.aten._assert_async.msg, (x, "x is zero"))
    graph.call_function(torch.ops.aten._assert_tensor_metadata.default, (x,))
    graph.call_function(torch.ops.aten.sin.default, (x,))
    graph.output(graph.call_function(torch.ops.aten.relu.default, (x,)))
    assert graph.eliminate_dead_code()
    assert [n.name for n in graph.nodes] == ["x", "_assert_async_msg", "_assert_tensor_metadata_default", "relu_default", "output"]
