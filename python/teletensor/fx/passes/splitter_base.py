"""Splitters: divide a module into submodules that a backend runs and submodules that it does not."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ... import nn
from ..._grad_mode import no_grad
from ..graph_module import GraphModule
from ..node import Node
from .operator_support import OperatorSupportBase, get_node_target
from .shape_prop import ShapeProp
from .split_utils import split_by_tags
from .tools_common import CALLABLE_NODE_OPS, FxNetAccFusionsFinder, NodeList, NodeSet, is_node_output_tensor

__all__ = [
    "FxNetAccNodesFinder", "FxNetSplitterInternalError", "Subgraph", "SplitResult", "generate_inputs_for_submodules",
]  # fmt: skip


class FxNetSplitterInternalError(Exception):
    """The nodes cannot be divided."""


@dataclass
class _SplitterSettingBase:
    """How a module is split.

    Attributes:
        min_acc_module_size: the minimum number of nodes in a submodule of the backend.
        skip_fusion: allows submodules to exchange values other than tensors.
        allow_non_tensor: allows the backend to receive and return values other than tensors.
        max_acc_splits: the maximum number of submodules in generate_split_results(); -1 for any number.
        move_non_tensor_nodes_on_boundary: not implemented.
    """

    min_acc_module_size: int = 1
    skip_fusion: bool = False
    allow_non_tensor: bool = False
    max_acc_splits: int = -1
    move_non_tensor_nodes_on_boundary: bool = False

    def __post_init__(self) -> None:
        if self.move_non_tensor_nodes_on_boundary:
            raise NotImplementedError("[splitter_base] move_non_tensor_nodes_on_boundary=True is not implemented")


class FxNetAccNodesFinder:
    """Finds the nodes that a backend runs.

    Args:
        module: a module over which ShapeProp has run.
        operator_support: decides which nodes are supported.
        allow_non_tensor: keeps nodes that exchange values other than tensors with nodes that are not supported.
    """

    def __init__(self, module: GraphModule, operator_support: OperatorSupportBase, allow_non_tensor: bool) -> None:
        self.module, self.operator_support, self.allow_non_tensor = module, operator_support, allow_non_tensor
        self.acc_nodes: NodeSet = set()

    def __call__(self) -> NodeSet:
        """The supported nodes."""
        submodules = dict(self.module.named_modules())
        calls = [node for node in self.module.graph.nodes if node.op in CALLABLE_NODE_OPS]
        self.acc_nodes = {node for node in calls if self.operator_support.is_node_supported(submodules, node)}
        if not self.allow_non_tensor:
            self._remove_users([node for node in calls if node not in self.acc_nodes and not is_node_output_tensor(node)])
            while removed := [node for node in self.acc_nodes if self._returns_other_values(node)]:
                self.acc_nodes.difference_update(removed)
                self._remove_users(removed)
        return self.acc_nodes

    def _returns_other_values(self, node: Node) -> bool:
        """Whether a node that is not supported uses the node's result, which is not a tensor."""
        return not is_node_output_tensor(node) and any(user not in self.acc_nodes for user in node.users)

    def _remove_users(self, pending: NodeList) -> None:
        """Removes the users of results that are not tensors, and the users of those nodes."""
        while pending:
            for user in pending.pop().users:
                if user in self.acc_nodes:
                    self.acc_nodes.remove(user)
                    if not is_node_output_tensor(user):
                        pending.append(user)


@dataclass
class Subgraph:
    """The nodes of one submodule, and whether the backend runs it."""

    is_acc: bool
    nodes: NodeList
    device_ordinal: int | None = None


class SplitResult(NamedTuple):
    """The split module, the inputs of its submodules by name, and the prefix of those that the backend does not run."""

    split_module: GraphModule
    submodule_inputs: dict[str, Any]
    non_acc_submodule_prefix: str


def generate_inputs_for_submodules(
    model: nn.Module, inputs: Sequence[Any], target_submodules: Iterable[str], deepcopy: bool = False
) -> dict[str, Any]:
    """Runs a model; returns the inputs of its submodules of these names.

    Args:
        deepcopy: copies the inputs.
    """
    names, results = {module: name for name, module in model.named_modules()}, {}

    def record(module: nn.Module, arguments: tuple) -> None:
        results[names[module]] = copy.deepcopy(arguments) if deepcopy else arguments

    wanted = set(target_submodules)
    handles = [module.register_forward_pre_hook(record) for module, name in names.items() if name in wanted]
    try:
        with no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
    return results


class _SplitterBase:
    """Splits a module; subclasses define what the backend does with its submodules.

    Args:
        module: the module.
        sample_input: its inputs.
        operator_support: decides which nodes the backend runs.
        settings: how to split.
        non_acc_submodule_name: the prefix of the other submodules' names; the backend's are _run_on_acc_<i>.
        return_tuple: submodules return tuples for one result too.
        nodes_finder: finds the backend's nodes; created from operator_support if None.
    """

    def __init__(
        self,
        module: GraphModule,
        sample_input: Sequence[Any],
        operator_support: OperatorSupportBase,
        settings: _SplitterSettingBase,
        non_acc_submodule_name: str = "_run_on_cpu_",
        return_tuple: bool = False,
        nodes_finder: FxNetAccNodesFinder | None = None,
    ) -> None:
        if not isinstance(module, GraphModule):
            raise AssertionError(f"Expected GraphModule, got {type(module)}")
        ShapeProp(module).propagate(*sample_input)
        self.module, self.sample_input, self.operator_support = module, sample_input, operator_support
        self.settings, self.non_acc_submodule_name, self._return_tuple = settings, non_acc_submodule_name, return_tuple
        self.acc_nodes = (nodes_finder or FxNetAccNodesFinder(module, operator_support, settings.allow_non_tensor))()
        self._calls = [node for node in module.graph.nodes if node.op in CALLABLE_NODE_OPS]
        together = not settings.skip_fusion and any(node not in self.acc_nodes for node in self._calls)
        self.fusions = FxNetAccFusionsFinder(module, self.acc_nodes)() if together else {}
        self.deps = self.find_deps()
        self.tags: list[str] = []
        self._node_submodule_map: dict[str, str] = {}

    def get_node_submodule_map(self) -> dict[str, str]:
        """The name of each node's submodule."""
        return self._node_submodule_map

    def find_deps(self) -> dict[Node, NodeSet]:
        """The calls that must run before each call; nodes that stay together wait for the inputs of all of them."""
        deps = {node: {arg for arg in node.all_input_nodes if arg.op in CALLABLE_NODE_OPS} for node in self._calls}
        for group in {id(group): group for group in self.fusions.values()}.values():
            outside = set().union(*(deps[node] for node in group)) - group
            for node in group:
                deps[node] |= outside
                for user in node.users:
                    if user in deps and user not in group:
                        deps[user] |= group
        return deps

    def put_nodes_into_subgraphs(self) -> list[Subgraph]:
        """Divides the calls, taking as many as possible of one kind, and then of the other.

        Raises:
            FxNetSplitterInternalError: there are no calls, or they depend on each other in a cycle.
        """
        waiting, done = dict.fromkeys(self._calls), set()
        is_acc = not any(not self.deps[node] for node in waiting if node not in self.acc_nodes)
        subgraphs: list[Subgraph] = []
        while waiting:
            nodes = []
            while ready := [n for n in waiting if (n in self.acc_nodes) == is_acc and self.deps[n] <= done]:
                nodes += ready
                done.update(ready)
                for node in ready:
                    del waiting[node]
            if not nodes:
                raise FxNetSplitterInternalError("Subgraph can't be empty")
            subgraphs.append(Subgraph(is_acc, sorted(nodes)))
            is_acc = not is_acc
        if not subgraphs:
            raise FxNetSplitterInternalError("Couldn't create subgraphs")
        return subgraphs

    def remove_small_acc_subgraphs(self, subgraphs: list[Subgraph]) -> list[Subgraph]:
        """Moves the nodes of the backend's small submodules to the other submodules."""
        result: list[Subgraph] = []
        for subgraph in subgraphs:
            size, least = len(subgraph.nodes), self.settings.min_acc_module_size
            if subgraph.is_acc and size >= least:
                result.append(subgraph)
                continue
            if subgraph.is_acc:
                print(f"Eliminating acc subgraph because it's smaller than the threshold: {size} < {least}")
            if result and not result[-1].is_acc:
                result[-1].nodes.extend(subgraph.nodes)
            else:
                result.append(Subgraph(False, subgraph.nodes))
        return result

    def tag(self, subgraphs: list[Subgraph]) -> None:
        """Sets the attribute `tag` of the nodes to the names of their submodules."""
        self.tags = []
        for i, subgraph in enumerate(subgraphs):
            tag = f"_run_on_acc_{i}" if subgraph.is_acc else f"{self.non_acc_submodule_name}{i}"
            self.tags.append(tag)
            for node in subgraph.nodes:
                if hasattr(node, "tag"):
                    raise FxNetSplitterInternalError(f"Node {node} was already tagged")
                node.tag = self._node_submodule_map[node.name] = tag

    def split(self, remove_tag: bool = False) -> GraphModule:
        """Splits the module by the tags; optionally removes them."""
        result = split_by_tags(self.module, self.tags, return_tuple=self._return_tuple)
        if remove_tag:
            for node in self._calls:
                del node.tag
        return result

    def __call__(self) -> GraphModule:
        """Splits the module."""
        subgraphs = self.remove_small_acc_subgraphs(self.put_nodes_into_subgraphs())
        count = sum(subgraph.is_acc for subgraph in subgraphs)
        print(f"Got {count} acc subgraphs and {len(subgraphs) - count} non-acc subgraphs")
        self.tag(subgraphs)
        return self.split()

    def generate_split_results(self) -> SplitResult:
        """Splits the module, and runs it to find the inputs of its submodules.

        Raises:
            ValueError: there are more submodules than max_acc_splits.
        """
        result = self()
        names = [name for name, _ in result.named_children()]
        if 0 < self.settings.max_acc_splits < len(names):
            raise ValueError(
                "Cannot fulfill max_acc_splits limit. This may cause split fragmentation and result in performance issues."
            )
        inputs = generate_inputs_for_submodules(result, self.sample_input, names)
        return SplitResult(result, inputs, self.non_acc_submodule_name)

    def node_support_preview(self, dump_graph: bool = False) -> str:
        """Prints and returns which targets are supported, with the dtypes of their arguments.

        Args:
            dump_graph: must be False; FxGraphDrawer draws graphs.
        """
        if dump_graph:
            raise NotImplementedError("[node_support_preview] dump_graph=True is not implemented; use FxGraphDrawer")
        submodules = dict(self.module.named_modules())
        kinds: dict[bool, dict[str, None]] = {True: {}, False: {}}
        for node in self._calls:
            dtypes = [_dtype(arg) for arg in node.args]
            while dtypes and dtypes[-1] is None:
                dtypes.pop()
            by_name = {name: _dtype(arg) for name, arg in node.kwargs.items() if isinstance(arg, Node)}
            supported = self.operator_support.is_node_supported(submodules, node)
            kinds[supported][f"{get_node_target(submodules, node)}: ({tuple(dtypes)}, {by_name})\n"] = None
        text = "\nSupported node types in the model:\n" + "".join(kinds[True])
        text += "\nUnsupported node types in the model:\n" + "".join(kinds[False])
        print(text)
        return text


def _dtype(arg: Any) -> Any:
    """The dtype that ShapeProp recorded for an argument; None for a constant."""
    return getattr(arg.meta.get("tensor_meta"), "dtype", None) if isinstance(arg, Node) else None
