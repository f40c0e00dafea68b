"""A model's graph for TensorBoard, from a symbolic trace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ... import _C, fx
from ..._grad_mode import no_grad
from ._tensorboard import (
    AttrValue,
    DeviceStepStats,
    GraphDef,
    NodeDef,
    RunMetadata,
    StepStats,
    TensorShapeProto,
    VersionDef,
)


class _Shapes(fx.Interpreter):
    """Runs the graph and notes the shapes of its values by node."""

    def __init__(self, module: fx.GraphModule):
        super().__init__(module)
        self.shapes: dict[str, list[tuple[int, ...]]] = {}

    def run_node(self, n: fx.Node) -> Any:
        result = super().run_node(n)
        values = result if isinstance(result, (tuple, list)) else [result]
        self.shapes[n.name] = [tuple(value.shape) for value in values if isinstance(value, _C.Tensor)]
        return result


def _operator(module: fx.GraphModule, node: fx.Node) -> str:
    if node.op == "call_module":
        return type(module.get_submodule(node.target)).__name__
    if node.op == "call_function":
        return getattr(node.target, "__name__", str(node.target))
    return {"placeholder": "IO Node", "output": "IO Node", "get_attr": "Parameter"}.get(node.op, str(node.target))


def _names(nodes: Iterable[fx.Node]) -> dict[fx.Node, str]:
    """Unique names whose parts between "/" are the submodules, which TensorBoard shows as boxes."""
    names: dict[fx.Node, str] = {}
    for node in nodes:
        name = node.name
        if node.op in ("call_module", "get_attr"):
            name = str(node.target).replace(".", "/")
        elif stack := [path for path in node.meta.get("nn_module_stack") or {} if path]:
            name = f"{stack[-1].replace('.', '/')}/{node.name}"
        names[node] = name if name not in names.values() else f"{name}/{node.name}"
    return names


def graph(model, args: Any, verbose: bool = False) -> tuple[GraphDef, RunMetadata]:
    """Returns the graph of a model's modules and operators, with the shapes that they return for `args`.

    Args:
        args: a tensor or a tuple of arguments; None: without shapes.
        verbose: prints the graph.

    Raises:
        RuntimeError: the model cannot be traced, because its Python code depends on values.
    """
    try:
        traced = fx.symbolic_trace(model)
    except Exception as error:
        raise RuntimeError(
            f"[add_graph] expected a model that torch.fx.symbolic_trace can trace, got {type(error).__name__}: {error}"
        ) from error
    shapes: dict[str, list[tuple[int, ...]]] = {}
    if args is not None:
        interpreter = _Shapes(traced)
        with no_grad():
            interpreter.run(*(args if isinstance(args, (tuple, list)) else (args,)))
        shapes = interpreter.shapes
    if verbose:
        print(traced.graph)
    names = _names(traced.graph.nodes)
    nodes = []
    for node in traced.graph.nodes:
        made = NodeDef(name=names[node], op=_operator(traced, node), input=[names[n] for n in node.all_input_nodes])
        constants = [a for a in (*node.args, *node.kwargs.items()) if not _contains_node(a)]
        if constants and node.op.startswith("call"):
            made.attr["attr"].CopyFrom(AttrValue(s=str(constants).encode()))
        if node.op == "call_module":
            made.attr["module"].CopyFrom(AttrValue(s=repr(traced.get_submodule(node.target)).encode()))
        if shapes.get(node.name):
            sizes = [TensorShapeProto(dim=[TensorShapeProto.Dim(size=s) for s in shape]) for shape in shapes[node.name]]
            made.attr["_output_shapes"].CopyFrom(AttrValue(list=AttrValue.ListValue(shape=sizes)))
        nodes.append(made)
    stats = RunMetadata(step_stats=StepStats(dev_stats=[DeviceStepStats(device="/device:CPU:0")]))
    return GraphDef(node=nodes, versions=VersionDef(producer=22)), stats


def _contains_node(value: Any) -> bool:
    found = []
    fx.node.map_arg(value, found.append)
    return bool(found)
