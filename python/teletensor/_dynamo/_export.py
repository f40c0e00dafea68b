"""torch._dynamo.export: one graph of a function, called as the function is."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import fx
from .._options import reject_values
from ..fx.graph import _PyTreeCodeGen, _PyTreeInfo
from ..fx.graph_module import GraphModule
from ..nn import Module, Parameter
from ..utils import _pytree as pytree
from ._values import Constant, DictValue, SequenceValue, SymbolValue, TensorValue, Value
from .eval_frame import Compiler, OptimizedModule, compiled
from .exc import Unsupported


class ExportResult(NamedTuple):
    """A graph with the signature of the function, and the conditions that the capture requires, as text."""

    graph_module: GraphModule
    guards: list[str]


class _Made:
    """Makes the module of a capture that has reached the end of the function."""

    def __init__(self, signature: inspect.Signature, first: int) -> None:
        self.signature, self.first = signature, first  # `first`: of the arguments, without the module
        self.result: ExportResult | None = None

    def __call__(self, ex: Any, result: Value, slots: tuple) -> None:
        if ex.globals or any(v.source is not None for v in ex.written.values()):
            raise Unsupported("a function that writes to objects has no graph of its own")
        if ex.draws or ex.prints:
            raise Unsupported("a function that prints or draws numbers with `random` has no graph of its own")
        args, kwargs = slots[1][self.first :], slots[2]
        leaves, in_spec = pytree.tree_flatten((tuple(args), dict(kwargs)))
        graph, root = fx.Graph(), Module()
        placeholders = {id(leaf): graph.placeholder(f"arg{i}") for i, leaf in enumerate(leaves)}
        nodes: dict[Any, Any] = {}
        for value in ex.inputs:
            found = placeholders.get(id(value.original))
            if found is None:
                found = graph.get_attr(self._attribute(root, value, ex.slot_names))
            nodes[value.node] = found
        outputs, out_spec = pytree.tree_flatten(self._structure(ex, result))
        for node in ex.graph.nodes:
            if node.op not in ("placeholder", "output"):
                nodes[node] = graph.node_copy(node, nodes.__getitem__)
        graph.output([nodes[o] if isinstance(o, fx.Node) else o for o in outputs])
        names = [*list(self.signature.parameters)[: len(args)], *kwargs]
        graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo(names, in_spec, out_spec)))
        self.result = ExportResult(GraphModule(root, graph), list(ex.guards.texts))

    @staticmethod
    def _attribute(root: Module, value: Any, names: tuple[str, ...]) -> str:
        if not isinstance(value, TensorValue):
            raise Unsupported("a number that is no argument")
        text = "".join(c if c.isalnum() else " " for c in value.source.text(names).replace("_parameters", "").replace("_buffers", ""))
        name = "_".join(["L", *text.split()])
        while hasattr(root, name):
            name += "_"
        if isinstance(value.original, Parameter):
            root.register_parameter(name, value.original)
        else:
            root.register_buffer(name, value.original)
        return name

    def _structure(self, ex: Any, value: Value) -> Any:
        value = ex.real(value)
        if isinstance(value, TensorValue):
            return ex.node_of(value)
        if isinstance(value, SymbolValue):
            return ex.node_of_symbol(value)
        if isinstance(value, Constant):
            return value.value
        if isinstance(value, SequenceValue) and value.cls in (list, tuple):
            return value.cls(self._structure(ex, item) for item in value.items)
        if isinstance(value, DictValue) and value.cls is dict:
            return {ex.python_value(k): self._structure(ex, v) for k, v in value.items.values()}
        raise Unsupported(f"a {type(value).__name__} as a result of an exported function")


def export(
    f: Callable, *extra_args: Any, aten_graph: bool = False, pre_dispatch: bool = False, decomposition_table: Any = None,
    tracing_mode: str = "symbolic", dynamic_shapes: Any = None, assume_static_by_default: bool = False, **extra_kwargs: Any,
) -> Any:  # fmt: skip
    """Returns a function that captures f(*args, **kwargs) as one graph, without calling it; with arguments, captures at once.

    The result is an ExportResult (graph_module, guards): a GraphModule that is called as f, with its parameters, and what was
    required of the arguments, as text.

    Args:
        f: a function or module. It may not write to objects that exist.
        assume_static_by_default: whether sizes and ints are constants; otherwise the graph computes with them.
        aten_graph, pre_dispatch, decomposition_table, dynamic_shapes: not implemented; torch.export.export() has them.
        tracing_mode: "symbolic".

    Raises:
        Unsupported: the function needs several graphs, or returns something else than tensors, numbers and containers.
    """
    refused = {"aten_graph": aten_graph or None, "pre_dispatch": pre_dispatch or None, "decomposition_table": decomposition_table}
    reject_values("export", "use torch.export.export", dynamic_shapes=dynamic_shapes, **refused)
    if tracing_mode != "symbolic":
        raise NotImplementedError(f"[export] expected tracing_mode='symbolic', got {tracing_mode!r}")

    def inner(*args: Any, **kwargs: Any) -> ExportResult:
        is_module = isinstance(f, Module)
        made = _Made(inspect.signature(f.forward if is_module else f), 1 if is_module else 0)
        compiler = Compiler(_keep, True, None, None, not assume_static_by_default)
        compiler.on_result = made
        target = OptimizedModule(f, compiler) if is_module else compiled(f, compiler)
        try:
            target(*args, **kwargs)
        except _Captured:
            pass
        if made.result is None:
            raise Unsupported("the function was not captured")
        return made.result

    return inner(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else inner


class _Captured(Unsupported):
    """Ends a call whose function was captured."""


def _keep(_module: Any, _inputs: Any) -> Callable:
    raise _Captured("captured")
