"""split_by_tags: splits a module into submodules by the attribute `tag` of its nodes."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg
from ..proxy import Proxy
from .utils import HolderModule, lift_subgraph_as_module

__all__ = ["getattr_recursive", "setattr_recursive", "Component", "split_by_tags"]


def getattr_recursive(obj: Any, name: str) -> Any:
    """The attribute of a qualified name; None if there is none."""
    for part in name.split("."):
        obj = getattr(obj, part, None)
    return obj


def setattr_recursive(obj: Any, attr: str, value: Any) -> None:
    """Sets the attribute of a qualified name."""
    path, _, name = attr.rpartition(".")
    setattr(getattr_recursive(obj, path) if path else obj, name, value)


@dataclass
class Component:
    """One submodule: its graph, its place in the order, and the original nodes that are its inputs and outputs."""

    graph: Graph
    order: int
    name: str
    input_placeholders: list[Node] = field(default_factory=list)
    orig_inputs: list[Node] = field(default_factory=list)
    orig_outputs: list[Node] = field(default_factory=list)
    getattr_maps: dict[Node, Node] = field(default_factory=dict)
    constructor_args: list[str] = field(default_factory=list)
    gm: GraphModule | None = None

    def input(self, node: Node) -> Node:
        """The placeholder of a node that another component computes."""
        if node not in self.orig_inputs:
            placeholder = self.graph.placeholder(node.name, type_expr=node.type)
            placeholder.meta = copy.copy(node.meta)
            self.orig_inputs.append(node)
            self.input_placeholders.append(placeholder)
        return self.input_placeholders[self.orig_inputs.index(node)]

    def attribute(self, node: Node) -> Node:
        """The component's node of an attribute."""
        if node not in self.getattr_maps:
            self.getattr_maps[node] = self.graph.get_attr(node.target, type_expr=node.type)
            self.getattr_maps[node].meta = copy.copy(node.meta)
        return self.getattr_maps[node]


def split_by_tags(
    gm: GraphModule,
    tags: list[str],
    return_fqn_mapping: bool = False,
    return_tuple: bool = False,
    GraphModuleCls: type[GraphModule] = GraphModule,
) -> Any:
    """Splits a module into one submodule per tag.

    Args:
        gm: a module each of whose calls has an attribute `tag`.
        tags: all tags in the order in which the submodules run; a node must not use results of later ones.
        return_fqn_mapping: also returns the new qualified name of each attribute.
        return_tuple: submodules return tuples for one result too.
        GraphModuleCls: the class of the result.

    Raises:
        AssertionError: a node has no tag, or uses the result of a later submodule.
    """
    components = {tag: Component(Graph(), i, tag) for i, tag in enumerate(tags)}
    main, main_nodes, copies, component_of = Graph(), {}, {}, {}
    crossing: dict[Node, None] = {}  # nodes that are used outside of their components
    for node in gm.graph.nodes:
        if node.op == "placeholder":
            main_nodes[node] = main.placeholder(node.name, type_expr=node.type)
            main_nodes[node].meta = copy.copy(node.meta)
        if node.op not in ("call_module", "call_function", "call_method"):
            continue
        if not hasattr(node, "tag"):
            raise AssertionError(f"Node does not have tag: {node.format_node()}")
        component = component_of[node] = components[node.tag]
        latest = max((component_of[n].order for n in node.all_input_nodes if n in component_of), default=0)
        if component.order < latest:
            raise AssertionError(
                f"Component {component.name} order must be >= max of its upstream components, order={component.order} and "
                f"max={latest}"
            )

        def remap(used: Node, component: Component = component) -> Node:
            if used.op == "get_attr":
                return component.attribute(used)
            if component_of.get(used) is component:
                return copies[used]
            crossing.setdefault(used)
            return component.input(used)

        copies[node] = component.graph.node_copy(node, remap)
        copies[node].tag = node.tag
    output = gm.graph.output_node()
    for node in output.all_input_nodes:
        if node.op == "get_attr":
            main_nodes[node] = main.get_attr(node.name, type_expr=node.type)
        else:
            crossing.setdefault(node)
    for node in crossing:
        if node in component_of:
            component_of[node].orig_outputs.append(node)
    names: dict[str, str] = {}
    for component in components.values():
        results = tuple(copies[node] for node in component.orig_outputs)
        single = len(results) == 1 and not return_tuple
        component.graph.output(results[0] if single else results)
        component.gm, renamed = lift_subgraph_as_module(gm, component.graph, component.name)
        names.update(renamed)
        call = main.call_module(component.name, tuple(main_nodes[node] for node in component.orig_inputs))
        for i, node in enumerate(component.orig_outputs):
            main_nodes[node] = call if single else Proxy(call)[i].node
    main.output(map_arg(output.args[0], main_nodes.__getitem__))
    main._codegen = gm.graph._codegen
    root = HolderModule({component.name: component.gm for component in components.values()})
    for node in output.all_input_nodes:
        if node.op == "get_attr":
            setattr(root, node.name, getattr_recursive(gm, node.target))
    result = GraphModuleCls(root, main)
    return (result, names) if return_fqn_mapping else result
