"""split_module: splits a module into submodules; a function assigns each node to one."""

from __future__ import annotations

import inspect
from typing import Any, Callable

from ... import nn
from .._attributes import _get_attr
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg
from ..proxy import Proxy

__all__ = ["Partition", "split_module", "split_module_simple"]


class Partition:
    """The nodes of one submodule, and its inputs and outputs.

    Attributes:
        node_names, inputs, outputs: names of nodes of the original graph.
        dependencies, dependents: names of partitions.
        graph: the submodule's graph.
        environment: the submodule's node for each node of the original. targets: the attributes that the submodule's
        nodes read.
    """

    def __init__(self, name: str) -> None:
        self.name, self.submod_name = name, f"submod_{name}"
        self.node_names: list[str] = []
        self.inputs: dict[str, None] = {}
        self.outputs: dict[str, None] = {}
        self.dependencies: dict[str, None] = {}
        self.dependents: dict[str, None] = {}
        self.graph = Graph()
        self.environment: dict[Node, Node] = {}
        self.targets: dict[str, Any] = {}

    def __repr__(self) -> str:
        return (
            f"name: {self.name},\n nodes: {self.node_names},\n inputs: {self.inputs},\n outputs: {self.outputs},\n "
            f"partitions depended on: {self.dependencies},\n partition dependents: {self.dependents}"
        )


class _Splitter:
    """One call of split_module()."""

    def __init__(self, m: GraphModule, options: dict[str, Any]) -> None:
        self.module, self.options = m, options
        self.nodes = {node.name: node for node in m.graph.nodes}
        self.partitions: dict[str, Partition] = {}
        self.partition_of: dict[Node, Partition] = {}
        self.graph = Graph()  # of the result
        self.environment: dict[str, Node] = {}  # the result's node for each name of the original
        self.attributes: dict[str, Any] = {}

    def assign(self, split_callback: Callable[[Node], Any]) -> None:
        """Assigns the nodes to partitions, and finds the values that each uses of the others."""
        affix = self.options["partition_affix"]
        for node in self.module.graph.nodes:
            if node.op in ("placeholder", "get_attr", "output"):
                continue
            name = "_".join([*([affix] if affix is not None else []), str(split_callback(node))])
            partition = self.partitions.setdefault(name, Partition(name))
            partition.node_names.append(node.name)
            self.partition_of[node] = partition
            node._fx_partition = name
        for node in self.module.graph.nodes:
            if node.op not in ("placeholder", "get_attr"):
                for used in node.all_input_nodes:
                    self._record_use(used, self.partition_of.get(node))

    def _record_use(self, used: Node, user: Partition | None) -> None:
        source = self.partition_of.get(used)
        if source is user:
            return
        if source is not None:
            source.outputs.setdefault(used.name)
            if user is not None:
                source.dependents.setdefault(user.name)
                user.dependencies.setdefault(source.name)
        if user is not None:
            user.inputs.setdefault(used.name)

    def ordered(self) -> list[Partition]:
        """The partitions in an order in which they can run.

        Raises:
            RuntimeError: there is none.
        """
        waits_for = {name: set(partition.dependencies) for name, partition in self.partitions.items()}
        ready = [name for name, needed in waits_for.items() if not needed]
        found = []
        while ready:
            name = ready.pop()
            found.append(self.partitions[name])
            for dependent in self.partitions[name].dependents:
                waits_for[dependent].discard(name)
                if not waits_for[dependent]:
                    ready.append(dependent)
        if len(found) != len(self.partitions):
            raise RuntimeError("cycle exists between partitions!")
        return list(self.partitions.values()) if self.options["keep_original_order"] else found

    def fill(self) -> None:
        """Copies the nodes into the partitions' graphs."""
        for partition in self.partitions.values():
            self._add_inputs(partition)
        for node, partition in self.partition_of.items():
            target = node.target
            if node.op == "call_module":
                value, target = _get_attr(self.module, target), target.replace(".", "_")
                partition.targets[target] = value
                if self.options["qualname_map"] is not None:
                    self.options["qualname_map"][f"{partition.submod_name}.{target}"] = node.target
            args, kwargs = (map_arg(a, partition.environment.__getitem__) for a in (node.args, node.kwargs))
            name = node.name if self.options["keep_original_node_name"] else None
            copied = partition.graph.create_node(node.op, target, args, kwargs, name=name, type_expr=node.type)
            copied.meta = node.meta.copy()
            partition.environment[node] = copied

    def _add_inputs(self, partition: Partition) -> None:
        """Creates the placeholders; submodules that are read become attributes of the partition."""
        modules = [name for name in partition.inputs if self._is_module(self.nodes[name])]
        plain = [name for name in partition.inputs if name not in modules]
        partition.inputs = dict.fromkeys(plain)
        for i, name in enumerate(plain):
            new_name = name if self.options["keep_original_input_name"] else f"arg_{i}"
            self._add_input(partition, name, partition.graph.placeholder(new_name, type_expr=self.nodes[name].type))
        for name in modules:
            target = self.nodes[name].target
            partition.targets[target] = _get_attr(self.module, target)
            self._add_input(partition, name, partition.graph.get_attr(target))

    def _add_input(self, partition: Partition, name: str, node: Node) -> None:
        node.meta = self.nodes[name].meta.copy()
        partition.environment[self.nodes[name]] = node

    def _is_module(self, node: Node) -> bool:
        return node.op == "get_attr" and isinstance(_get_attr(self.module, node.target), nn.Module)

    def join(self, partitions: list[Partition]) -> GraphModule:
        """The module that calls the partitions."""
        lazily = self.options["keep_original_order"]
        for node in self.nodes.values():
            if node.op == "placeholder" or node.op == "get_attr" and not lazily:
                self._add_to_result(node)
        for partition in partitions:
            for name in partition.inputs:
                if name not in self.environment and self.nodes[name].op == "get_attr":
                    self._add_to_result(self.nodes[name])
            self._call(partition)
        for node in self.nodes.values():
            if node.op == "output":
                for used in node.all_input_nodes:
                    if used.name not in self.environment:
                        self._add_to_result(used)
                self.graph.output(map_arg(node.args[0], lambda n: self.environment[n.name]))
        result = GraphModule(self.attributes, self.graph)
        result.meta["partition_names"] = {partition.submod_name for partition in self.partitions.values()}
        return result

    def _add_to_result(self, node: Node) -> None:
        """Adds a placeholder or attribute."""
        if node.op == "get_attr":
            self.attributes[node.target] = _get_attr(self.module, node.target)
            added = self.graph.get_attr(node.target)
        else:
            default = node.args[0] if node.args else inspect.Signature.empty
            name = node.name if self.options["keep_original_node_name"] else node.target
            added = self.graph.placeholder(name, type_expr=node.type, default_value=default)
        added.meta = node.meta.copy()
        self.environment[node.name] = added

    def _call(self, partition: Partition) -> None:
        """Adds the call of a partition, and one node per result."""
        results = tuple(partition.environment[self.nodes[name]] for name in partition.outputs)
        single = len(results) == 1 and not self.options["tuple_return"]
        partition.graph.output(results[0] if single else results)
        self.attributes[partition.submod_name] = GraphModule(partition.targets, partition.graph)
        call = self.graph.call_module(
            partition.submod_name, tuple(self.environment[name] for name in partition.inputs)
        )
        if single:
            self.environment[next(iter(partition.outputs))] = call
            return
        proxy = Proxy(call)
        for i, name in enumerate(partition.outputs):
            self.environment[name] = proxy[i].node


def split_module(
    m: GraphModule,
    root_m: nn.Module,
    split_callback: Callable[[Node], Any],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False,
    keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: str | None = None,
    tuple_return: bool = False,
) -> GraphModule:
    """Splits a module into submodules submod_<partition>.

    Args:
        m: the module.
        root_m: the module that was traced; attributes are taken from `m`.
        split_callback: returns the partition of a node, a number or name.
        qualname_map: receives the original qualified name of each submodule's module.
        keep_original_order: calls the partitions in the order of their first nodes.
        keep_original_node_name: nodes keep their names; by default they are named after their targets.
        keep_original_input_name: submodules' inputs are named after the nodes; otherwise arg_0, arg_1, ...
        partition_affix: a text before the partition in the submodules' names.
        tuple_return: submodules return tuples for one result too.

    Returns:
        A module that calls the submodules.

    Raises:
        RuntimeError: two partitions need each other's results.
    """
    splitter = _Splitter(m, {
        "qualname_map": qualname_map, "keep_original_order": keep_original_order,
        "keep_original_node_name": keep_original_node_name, "keep_original_input_name": keep_original_input_name,
        "partition_affix": partition_affix, "tuple_return": tuple_return,
    })  # fmt: skip
    splitter.assign(split_callback)
    partitions = splitter.ordered()
    splitter.fill()
    return splitter.join(partitions)


def split_module_simple(
    m: GraphModule, node_to_partition: dict[Node, int], *, partition_affix: str | None = None
) -> GraphModule:
    """split_module() by a dict of all nodes but inputs and the output, with the partitions in their original order.

    Nodes that read attributes may be in the dict; they are copied to the partitions that use them.
    """
    return split_module(m, m, node_to_partition.__getitem__, keep_original_order=True, partition_affix=partition_affix)
