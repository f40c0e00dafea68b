"""Computes the parts of a graph that quantize constants, and stores the results in the module."""

from __future__ import annotations

from typing import Any

from .... import ops
from ...._grad_mode import no_grad
from ....fx import GraphModule, Node, map_arg
from ._graph import add_buffer, constant, is_constant

_IMPURE = "_"  # the last character of the name of an operator that writes its input


def quantize_targets() -> tuple:
    """The operators that quantize a tensor."""
    d = ops.quantized_decomposed
    return d.quantize_per_tensor.default, d.quantize_per_tensor.tensor, d.quantize_per_channel.default


def _foldable(node: Any, known: dict[Node, bool]) -> bool:
    """Whether a node's value depends on attributes of the module only."""
    if node in known:
        return known[node]
    if is_constant(node):
        return True
    name = str(getattr(node.target, "_schema", node.target)).split("(")[0].split(".")[0]
    known[node] = (
        node.op == "call_function"
        and bool(node.all_input_nodes)
        and not name.endswith(_IMPURE)
        and "rand" not in name
        and all(_foldable(n, known) for n in node.all_input_nodes)
    )
    return known[node]


def _value_of(node: Node, model: GraphModule, values: dict[Node, Any]) -> Any:
    if node not in values:
        if is_constant(node):
            values[node] = constant(model, node)
        else:
            args, kwargs = (map_arg(part, lambda n: _value_of(n, model, values)) for part in (node.args, node.kwargs))
            values[node] = node.target(*args, **kwargs)
    return values[node]


@no_grad()
def fold_constants(model: GraphModule, targets: tuple) -> None:
    """Replaces every call of the operators whose inputs are constants by a buffer ``_frozen_param0``, 1, ... with its value."""
    known: dict[Node, bool] = {}
    values: dict[Node, Any] = {}
    for node in list(model.graph.nodes):
        if node.op != "call_function" or node.target not in targets or not _foldable(node, known):
            continue
        name = add_buffer(model, "_frozen_param", _value_of(node, model, values).detach())
        with model.graph.inserting_before(node):
            folded = model.graph.create_node("get_attr", name, (), {})
        node.replace_all_uses_with(folded)
        folded.meta.update(node.meta)
        title = node.name
        model.graph.erase_node(node)
        folded.name = title
    model.graph.eliminate_dead_code()
    model.recompile()
