"""Graphs within graphs: the functions that operators of torch.ops.higher_order receive, and regions without gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._C import Tensor
from ..._higher_order_ops import control
from ..._higher_order_ops._operator import OPERATORS, HigherOrderOperator
from ..._symbolic_bool import SymBool
from ..._torch_c_compat import _set_grad_enabled
from ...utils import _pytree as pytree
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node
from ._numbers import is_number
from ._recorded import RecordedTensor
from ._recording import Recording, active
from ._size_nodes import Layout
from ._sizes import is_expression


class _Part:
    """The graph of a function that an operator receives."""

    def __init__(self, outer: Recording, function: Callable, operands: list[Any], name: str) -> None:
        with outer.unrecorded():
            self.recording = Recording(True, outer.decompositions, outer.log, outer)
        self.recording.is_grad_enabled = outer.is_grad_enabled
        given = []
        for i, value in enumerate(operands):
            with outer.unrecorded():
                given.append(self.recording.placeholder(f"arg{i}_1", value) if isinstance(value, Tensor) else value)
        with outer.unrecorded(), self.recording:
            result = function(*given)
        self.recording.check_refused()
        leaves, self.spec = pytree.tree_flatten(result)
        if not all(isinstance(v, Tensor) for v in leaves):
            raise RuntimeError(f"[{name}] expected the function to return tensors, got {[type(v).__name__ for v in leaves]}")
        with outer.unrecorded():
            self.results = [self.recording.own(v) for v in leaves]
        self.name = name

    def finish(self, captured: list[RecordedTensor]) -> GraphModule:
        """The module, whose last inputs are the captured tensors of all parts."""
        recording = self.recording
        with _quiet():
            for tensor in captured:
                recording.own(tensor)
        graph = recording.graph
        places = [n for n in graph.nodes if n.op == "placeholder" and n not in {m._node for _, m in recording.captured.values()}]
        wanted = places + [recording.captured[id(t)][1]._node for t in captured]
        last = None
        for node in wanted:  # in the order of the operands
            if last is not None:
                last.append(node)
            last = node
        results = tuple(t._node for t in self.results)
        graph.output(results[0] if self.name == "while_loop_cond_graph" and len(results) == 1 else results)
        return GraphModule(recording.root, graph)


def _quiet() -> Any:
    recording = active()
    assert recording is not None
    return recording.unrecorded()


def _own_in_outer(outer: Recording, operands: list[Any]) -> list[Any]:
    with outer.unrecorded():
        return [outer.own(v) if isinstance(v, Tensor) else v for v in operands]


def _record(outer: Recording, operator: HigherOrderOperator, before: list, functions: list, operands: list, call: Callable) -> Any:
    """Adds a node `operator(*before, graphs, *rest)` and returns the results of `call`, computed without a graph."""
    operands = _own_in_outer(outer, operands)
    parts = [_Part(outer, function, inputs, name) for function, inputs, name in functions]
    captured: dict[int, RecordedTensor] = {}
    for part in parts:
        captured |= {key: tensor for key, (tensor, _) in part.recording.captured.items()}
    modules = [part.finish(list(captured.values())) for part in parts]
    nodes = []
    for part, module in zip(parts, modules):
        count = sum(name.startswith(part.name) for name, _ in outer.root.named_children())
        outer.root.add_module(f"{part.name}_{count}", module)
        nodes.append(outer.graph.get_attr(f"{part.name}_{count}"))
    with outer.unrecorded():
        node = outer.add(operator, *call(nodes, [outer.argument(v) for v in before], [outer.own(t)._node for t in captured.values()]))
        return parts, node


def _metadata(tensors: list[RecordedTensor]) -> list[tuple]:
    return [(t.plain_sizes(), t.dtype) for t in tensors]


def _is_like(a: list[RecordedTensor], b: list[RecordedTensor]) -> bool:
    """Whether tensors have the same sizes and dtypes, which runs are required to have."""
    if _metadata(a) != _metadata(b):
        return False
    return all(m == n for t, u in zip(a, b) for m, n in zip(t.shape, u.shape) if not is_number(m) and not is_number(n))


def _stacked_layout(outer: Recording, length: RecordedTensor, row: RecordedTensor, value: Tensor) -> Layout | None:
    """The layout of rows, as many as another tensor has."""
    if outer.log is None:
        return None
    first, rest = outer.layout_of(length), outer.layout_of(row)
    sizes = [first.sizes[0] if first else length.plain_sizes()[0], *(rest.sizes if rest else row.plain_sizes())]
    return Layout.dense(outer.log.facts, value, sizes) if any(map(is_expression, sizes)) else None


def _results(outer: Recording, node: Node, part: _Part) -> Any:
    with outer.unrecorded():
        values = tuple(t._value.detach() for t in part.results)
        made = outer.result(node, values, part.results[0].device if values else None, [t._layout for t in part.results])
        for result, t in zip(made, part.results):
            result._value = t._value
    return pytree.tree_unflatten(list(made), part.spec)


def _cond(outer: Recording, pred: Any, true_fn: Callable, false_fn: Callable, operands: Any) -> Any:
    if not isinstance(pred, Tensor) and not (type(pred) is SymBool and outer.outer is None and outer.unbacked is None):
        return (true_fn if pred else false_fn)(*operands)
    leaves, spec = pytree.tree_flatten(tuple(operands))
    flat = lambda f: lambda *values: f(*pytree.tree_unflatten(list(values), spec))  # noqa: E731
    leaves = _own_in_outer(outer, leaves)
    functions = [(flat(true_fn), leaves, "true_graph"), (flat(false_fn), leaves, "false_graph")]
    parts, node = _record(
        outer, OPERATORS["cond"], [pred, leaves], functions, leaves,
        lambda graphs, before, captured: ((before[0], *graphs, (*before[1], *captured)), {}),
    )  # fmt: skip
    if parts[0].spec != parts[1].spec or not _is_like(parts[0].results, parts[1].results):
        raise RuntimeError(
            f"[cond] expected both functions to return tensors of the same sizes and dtypes, got {_metadata(parts[0].results)} and "
            f"{_metadata(parts[1].results)}"
        )
    return _results(outer, node, parts[0])


def _while_loop(outer: Recording, cond_fn: Callable, body_fn: Callable, carried: Any) -> Any:
    leaves, spec = pytree.tree_flatten(tuple(carried))
    flat = lambda f: lambda *values: f(*pytree.tree_unflatten(list(values), spec))  # noqa: E731
    leaves = _own_in_outer(outer, leaves)
    functions = [(flat(cond_fn), leaves, "while_loop_cond_graph"), (flat(body_fn), leaves, "while_loop_body_graph")]
    parts, node = _record(
        outer, OPERATORS["while_loop"], [leaves], functions, leaves,
        lambda graphs, before, captured: ((*graphs, tuple(before[0]), tuple(captured)), {}),
    )  # fmt: skip
    if not _is_like(parts[1].results, leaves):
        raise RuntimeError(
            f"[while_loop] expected body_fn to return values like its arguments {_metadata(leaves)}, got {_metadata(parts[1].results)}"
        )
    return tuple(pytree.tree_leaves(_results(outer, node, parts[1])))


def _scan(outer: Recording, combine_fn: Callable, init: list, xs: list, additional: tuple) -> Any:
    init, xs, additional = (_own_in_outer(outer, list(v)) for v in (init, xs, additional))
    rows = [x.select(0, 0) for x in xs]
    inputs = [*init, *rows, *additional]
    parts, node = _record(
        outer, OPERATORS["scan"], [init, xs, additional], [(combine_fn, inputs, "scan_combine_graph")], inputs,
        lambda graphs, before, captured: ((graphs[0], before[0], before[1], (*before[2], *captured)), {}),
    )  # fmt: skip
    results, count = parts[0].results, len(init)
    if not _is_like(results[:count], init):
        raise RuntimeError("[scan] expected combine_fn to return carried values like `init`")
    with outer.unrecorded():
        length = xs[0].plain_sizes()[0]
        stacked = [t._value.expand(length, *t._value.shape).contiguous() for t in results[count:]]
        layouts = [t._layout for t in results[:count]] + [_stacked_layout(outer, xs[0], t, v) for t, v in zip(results[count:], stacked)]
        return outer.result(node, (*(t._value for t in results[:count]), *stacked), inputs[0].device, layouts)


def _map(outer: Recording, function: Callable, xs: list, additional: tuple) -> Any:
    xs, additional = (_own_in_outer(outer, list(v)) for v in (xs, additional))
    rows = [x.select(0, 0) for x in xs]
    inputs = [*rows, *additional]
    parts, node = _record(
        outer, OPERATORS["map_impl"], [xs, additional], [(function, inputs, "body_graph")], inputs,
        lambda graphs, before, captured: ((graphs[0], before[0], [*before[1], *captured]), {}),
    )  # fmt: skip
    with outer.unrecorded():
        length = xs[0].plain_sizes()[0]
        values = tuple(t._value.expand(length, *t._value.shape).contiguous() for t in parts[0].results)
        layouts = [_stacked_layout(outer, xs[0], t, v) for t, v in zip(parts[0].results, values)]
        return outer.result(node, values, inputs[0].device, layouts)


_RECORDED = {"cond": _cond, "while_loop": _while_loop, "scan": _scan, "map_impl": _map}


class ValuesError(BaseException):
    """The function is to be recorded again, without values: it calls an operator of torch.ops.higher_order."""


def record_operator(operator: HigherOrderOperator, args: tuple) -> Any:
    """Records a call of an operator of torch.ops.higher_order; computes it if no recording of such calls is active."""
    outer = active()
    rule = _RECORDED.get(operator.name())
    if outer is None or rule is None or not outer.records_operators:
        return operator.function(*args)
    if not outer.fake:
        raise ValuesError
    return rule(outer, *args)


def without_mode_changes(graph: Graph, root: Any, enabled: bool) -> None:
    """Replaces the calls between two changes of the gradient mode by wrap_with_set_grad_enabled() of a submodule."""
    import operator

    current, region, regions = enabled, [], []
    for node in list(graph.nodes):
        if node.target is _set_grad_enabled or node.op == "output":
            if region:
                regions.append((current, region))
            current, region = (node.args[0] if node.op != "output" else current), []
            if node.op != "output":
                graph.erase_node(node)
        elif current != enabled and node.op == "call_function":
            region.append(node)
    for i, (mode, nodes) in enumerate(regions, 1):
        inside = set(nodes)
        inputs = list(dict.fromkeys(n for node in nodes for n in node.all_input_nodes if n not in inside))
        outputs = [n for n in nodes if any(u not in inside for u in n.users)]
        part = Graph()
        copies = {n: part.placeholder(n.name) for n in inputs}
        for n in inputs:
            copies[n].meta = dict(n.meta)
        for n in nodes:
            copies[n] = part.node_copy(n, copies.__getitem__)
        part.output(tuple(copies[n] for n in outputs))
        root.add_module(f"submod_{i}", GraphModule(root, part))
        with graph.inserting_before(nodes[0]):
            module = graph.get_attr(f"submod_{i}")
            call = graph.create_node(
                "call_function", OPERATORS["wrap_with_set_grad_enabled"], (mode, module, *inputs), {}, "wrap_with_set_grad_enabled"
            )
            call.meta["val"] = tuple(n.meta.get("val") for n in outputs)
            items = [graph.call_function(operator.getitem, (call, j)) for j in range(len(outputs))]
        for n, item in zip(outputs, items):
            item.meta = dict(n.meta)
            n.replace_all_uses_with(item, delete_user_cb=lambda user, inside=inside: user not in inside)
        for n in reversed(nodes):
            graph.erase_node(n)


assert control  # registers the operators
