"""split_const_subgraphs: constant folding. Nodes that do not depend on the inputs are computed only once."""

from __future__ import annotations

import re
from typing import Any, Callable

from ... import nn
from ..._C import Tensor
from .._attributes import _get_attr
from .._purity import is_repeatable
from .._symbolic_trace import symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node

__all__ = ["FoldedGraphModule", "get_unique_attr_name_in_module", "split_const_subgraphs"]


class FoldedGraphModule(GraphModule):
    """A module whose constant part runs at its first call; its results are kept as parameters.

    Args:
        root, graph: see GraphModule.
        const_subgraph: the graph of the constant part, or None.
        fx_const_folded_attrs_name: the attribute that receives its results.
        device_for_folded_attrs: the device of results that are numbers.
    """

    def __init__(
        self,
        root: nn.Module,
        graph: Graph,
        const_subgraph: Graph | None = None,
        fx_const_folded_attrs_name: str | None = None,
        device_for_folded_attrs: str = "cuda",
    ) -> None:
        super().__init__(root, graph)
        self.const_subgraph_module = None if const_subgraph is None else GraphModule(root, const_subgraph)
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args, **kwargs)

    def run_folding(self) -> None:
        """Runs the constant part and stores its results.

        Raises:
            AssertionError: it has run already.
        """
        if self.const_subgraph_module is None or self.fx_const_folded_attrs_name is None:
            return
        if self.has_folding_been_run:
            raise AssertionError("Folding has already been run")
        self.has_folding_been_run = True
        values = self.const_subgraph_module()
        several = isinstance(values, tuple)
        folded = nn.ParameterList([self._parameter(v) for v in values]) if several else self._parameter(values)
        setattr(self, self.fx_const_folded_attrs_name, folded)

    def _parameter(self, value: Any) -> nn.Parameter:
        if isinstance(value, Tensor):
            return nn.Parameter(value.detach().clone(), requires_grad=value.requires_grad)
        import teletensor

        return nn.Parameter(teletensor.tensor([value], device=self.device_for_folded_attrs), requires_grad=False)


def get_unique_attr_name_in_module(mod_traced: GraphModule, name: str) -> str:
    """A name like this one that the module does not have: numbered if necessary."""
    name = re.sub("[^0-9a-zA-Z_]+", "_", name)
    name = f"_{name}" if name[0].isdigit() else name
    while hasattr(mod_traced, name):
        match = re.match(r"(.*)_(\d+)$", name)
        name = f"{name}_1" if match is None else f"{match.group(1)}_{int(match.group(2)) + 1}"
    return name


def _constant_nodes(module: GraphModule, skip: Callable[[Node], bool] | None) -> list[Node]:
    """The nodes that do not depend on inputs, in order."""
    found: dict[Node, None] = {}
    for node in module.graph.nodes:
        if not is_repeatable(node) or skip is not None and skip(node):
            continue
        if node.op == "get_attr" and isinstance(_get_attr(module, node.target), nn.Module):
            continue
        if all(used in found for used in node.all_input_nodes):
            found[node] = None
    return list(found)


def split_const_subgraphs(
    module: nn.Module,
    skip_folding_node_fn: Callable[[Node], bool] | None = None,
    device_for_folded_attrs: str = "cpu",
    is_impure_node: Callable[[Node], bool] | None = None,
) -> FoldedGraphModule:
    """Separates the nodes that do not depend on the inputs. They run once, at the module's first call.

    The parameters that these nodes use must not change afterwards, not even in place. Random functions, and
    functions and modules that are not teletensor's or Python's, are not constants.

    Args:
        skip_folding_node_fn: returns whether to leave a node where it is.
        device_for_folded_attrs: the device of results that are numbers.
        is_impure_node: see Graph.eliminate_dead_code().
    """
    traced = module if isinstance(module, GraphModule) else symbolic_trace(module)
    constant = _constant_nodes(traced, skip_folding_node_fn)
    if all(node.op == "get_attr" for node in constant):
        return FoldedGraphModule(traced, traced.graph)
    inside = set(constant)
    outputs = [n for n in constant if n.op != "get_attr" and any(user not in inside for user in n.users)]
    const_graph, const_nodes = Graph(), {}
    for node in constant:
        const_nodes[node] = const_graph.node_copy(node, const_nodes.__getitem__)
    results = tuple(const_nodes[node] for node in outputs)
    const_graph.output(results[0] if len(results) == 1 else results)
    const_graph.eliminate_dead_code(is_impure_node or (lambda node: node.op in ("placeholder", "output")))
    name = get_unique_attr_name_in_module(traced, "_FX_CONST_FOLDED_ATTRS")
    graph = _without_constants(traced.graph, inside, outputs, name)
    setattr(traced, name, nn.ParameterList() if len(outputs) > 1 else nn.Parameter())
    folded = FoldedGraphModule(traced, graph, const_graph, name, device_for_folded_attrs)
    delattr(traced, name)
    if is_impure_node is not None:
        folded.graph.eliminate_dead_code(is_impure_node)
        folded.recompile()
    return folded


def _without_constants(graph: Graph, constant: set[Node], outputs: list[Node], name: str) -> Graph:
    """The graph with the constant nodes replaced by an attribute."""
    import operator

    result, copies = Graph(tracer_cls=graph._tracer_cls), {}
    result._codegen = graph._codegen
    for node in graph.nodes:
        needed = node.op == "get_attr" and any(user not in constant for user in node.users)
        if node not in constant or needed:
            missing = [used for used in node.all_input_nodes if used not in copies]
            if missing:
                folded = result.get_attr(name)
                for i, output in enumerate(outputs):
                    several = len(outputs) > 1
                    copies[output] = result.call_function(operator.getitem, (folded, i)) if several else folded
            copies[node] = result.node_copy(node, copies.__getitem__)
    return result
