"""Control flow: cond as If, while_loop as Loop, scan and map as Scan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import _C
from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ._builder import Builder, Graph, Value
from ._registry import Untranslatable


def _inner(converter: Any, part: Builder, module: GraphModule, given: Sequence[Any]) -> list[Value]:
    """The results of a function's graph in a part, each made by a node of it."""
    placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
    found = converter.translate_nodes(part, module, dict(zip(placeholders, given, strict=True)))
    if any(not isinstance(v, Value) for v in found):
        if converter.graph.problems:
            return []
        raise Untranslatable("a function within the graph returns a value that is no tensor")
    made = {name for record in part.nodes for name in record.outputs}
    seen: set[str] = set()
    results = []
    for v in found:
        if v.name not in made or v.name in seen:
            v = part.op("Identity", v, shape=v.shape)
        seen.add(v.name)
        results.append(v)
    return results


def _failed(converter: Any) -> Any:
    return converter.failed if converter.graph.problems else None


def cond(
    converter: Any,
    b: Builder,
    node: Node,
    pred: Value,
    true_graph: GraphModule,
    false_graph: GraphModule,
    operands: Sequence[Any],
) -> Any:
    """If, whose branches read the operands from the graph around them."""
    condition = b.cast(pred, _C.bool)
    condition = condition if condition.shape == () else b.reshape(condition, [])
    dtypes, shapes = b.dtype, b.shape
    branches = []
    for name, module in (("then_branch", true_graph), ("else_branch", false_graph)):
        part = b.part()
        branches.append(Graph(part, [], _inner(converter, part, module, operands), f"{node.name}_{name}"))
    if (failed := _failed(converter)) is not None:
        return failed
    made = b.op(
        "If",
        condition,
        then_branch=branches[0],
        else_branch=branches[1],
        outputs=len(dtypes),
        dtype=dtypes,
        shape=shapes,
    )
    return [made] if len(dtypes) == 1 else list(made)


def while_loop(
    converter: Any, b: Builder, node: Node, cond_graph: GraphModule, body_graph: GraphModule, carried: Sequence[Value],
    additional: Sequence[Value] = (),
) -> Any:  # fmt: skip
    """Loop: the condition is computed before the first iteration and at the end of each."""
    dtypes, shapes = b.dtype, b.shape
    carried = [b.value(v) for v in carried]
    placeholders = [n for n in cond_graph.graph.nodes if n.op == "placeholder"]
    start = converter.translate_nodes(b, cond_graph, dict(zip(placeholders, [*carried, *additional], strict=True)))[0]
    part = b.part()
    inputs = [
        Value(part, b.shared.fresh("iteration"), _C.int64, ()),
        Value(part, b.shared.fresh("condition"), _C.bool, ()),
    ]
    state = [Value(part, b.shared.fresh("carried"), v.dtype, v.shape) for v in carried]
    new = _inner(converter, part, body_graph, [*state, *additional])
    if (failed := _failed(converter)) is not None:
        return failed
    again = converter.translate_nodes(part, cond_graph, dict(zip(placeholders, [*new, *additional], strict=True)))[0]
    again = part.op("Identity", again if again.shape == () else part.reshape(again, []), shape=())
    body = Graph(part, [*inputs, *state], [again, *new], f"{node.name}_body")
    start = start if start.shape == () else b.reshape(start, [])
    made = b.op("Loop", None, start, *carried, body=body, outputs=len(carried), dtype=dtypes, shape=shapes)
    return [made] if len(carried) == 1 else list(made)


def _scanned(
    converter: Any,
    b: Builder,
    node: Node,
    module: GraphModule,
    init: Sequence[Value],
    xs: Sequence[Value],
    rest: Sequence[Value],
) -> Any:
    dtypes, shapes = b.dtype, b.shape
    part = b.part()
    state = [Value(part, b.shared.fresh("carried"), v.dtype, v.shape) for v in init]
    rows = [Value(part, b.shared.fresh("row"), v.dtype, v.shape[1:]) for v in xs]
    results = _inner(converter, part, module, [*state, *rows, *rest])
    if (failed := _failed(converter)) is not None:
        return failed
    body = Graph(part, [*state, *rows], results, f"{node.name}_body")
    made = b.op(
        "Scan", *init, *xs, body=body, num_scan_inputs=len(xs), outputs=len(results), dtype=dtypes, shape=shapes
    )
    return [made] if len(results) == 1 else list(made)


def scan(
    converter: Any,
    b: Builder,
    node: Node,
    module: GraphModule,
    init: Sequence[Value],
    xs: Sequence[Value],
    rest: Sequence[Value] = (),
) -> Any:
    """Scan with carried values."""
    return _scanned(converter, b, node, module, init, xs, rest)


def map_impl(
    converter: Any, b: Builder, node: Node, module: GraphModule, xs: Sequence[Value], rest: Sequence[Value] = ()
) -> Any:
    """Scan without carried values."""
    return _scanned(converter, b, node, module, [], xs, rest)


def with_grad(converter: Any, b: Builder, node: Node, enabled: bool, module: GraphModule, *operands: Any) -> Any:
    """The nodes of a region without gradients, in place."""
    del node, enabled
    placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
    return converter.translate_nodes(b, module, dict(zip(placeholders, operands, strict=True)))


OPERATORS: dict[str, Callable] = {
    "cond": cond, "while_loop": while_loop, "scan": scan, "map_impl": map_impl, "wrap_with_set_grad_enabled": with_grad,
}  # fmt: skip
