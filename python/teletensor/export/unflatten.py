"""unflatten(): a program as a hierarchy of modules, by the modules that called its operators."""

from __future__ import annotations

import abc
import operator
from typing import Any

from .._C import Tensor
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ..nn import Module
from ..utils import _pytree as pytree
from .exported_program import ExportedProgram, add_tensor

__all__ = ["FlatArgsAdapter", "UnflattenedModule", "unflatten"]


class FlatArgsAdapter(abc.ABC):
    """Changes flattened arguments whose structure is not that of the exported program."""

    @abc.abstractmethod
    def adapt(
        self, target_spec: pytree.TreeSpec, input_spec: pytree.TreeSpec, input_args: list[Any], metadata: dict[str, Any] | None = None,
        obj: Any | None = None,
    ) -> list[Any]:  # fmt: skip
        """The leaves in the structure of the program, for leaves in another structure."""


def _stack(node: Node) -> list[str]:
    """The names of the modules that called an operator, the outermost first, without the root."""
    return [name for name in node.meta.get("nn_module_stack") or {} if name]


class _Part:
    """The graph of one call of a module."""

    def __init__(self, outer: GraphModule, depth: int) -> None:
        self.outer, self.depth = outer, depth
        self.counts: dict[str, int] = {}

    def module(self, nodes: list[Node], inputs: list[Node], results: list[Any], path: str) -> GraphModule:
        """The module of some nodes: those of modules that were called become calls of submodules."""
        graph, root = Graph(), Module()
        copies: dict[Node, Node] = {}
        for node in inputs:
            copies[node] = graph.placeholder(node.name)
            copies[node].meta = dict(node.meta)
        at = 0
        while at < len(nodes):
            node = nodes[at]
            child = self._child(node)
            if child is None:
                self._attributes(node, path, root, graph, copies)
                copies[node] = graph.node_copy(node, copies.__getitem__)
                at += 1
                continue
            end = at
            while end < len(nodes) and self._child(nodes[end]) == child:
                end += 1
            self._call(nodes[at:end], child, path, graph, root, copies)
            at = end
        for result in results:
            if isinstance(result, Node) and result.op == "get_attr" and result not in copies:
                self._attribute(result, path, root, graph, copies)
        graph.output(tuple(copies[r] if isinstance(r, Node) else r for r in results))
        return GraphModule(root, graph)

    def _attributes(self, node: Node, path: str, root: Module, graph: Graph, copies: dict) -> None:
        """Reads the attributes that a node uses."""
        for used in node.all_input_nodes:
            if used.op == "get_attr" and used not in copies:
                self._attribute(used, path, root, graph, copies)

    def _attribute(self, node: Node, path: str, root: Module, graph: Graph, copies: dict) -> None:
        target = node.target.removeprefix(f"{path}.") if path else node.target
        _set_attribute(root, target, _attribute_of(self.outer, node.target))
        copies[node] = graph.get_attr(target)
        copies[node].meta = dict(node.meta)

    def _child(self, node: Node) -> str | None:
        stack = _stack(node)
        return stack[self.depth] if len(stack) > self.depth else None

    def _call(self, nodes: list[Node], child: str, path: str, graph: Graph, root: Module, copies: dict) -> None:
        known = set(nodes)
        inputs = []
        for used in dict.fromkeys(i for n in nodes for i in n.all_input_nodes if i not in known):
            if used.op == "get_attr":
                if used.target.startswith(f"{child}.") or isinstance(_attribute_of(self.outer, used.target), GraphModule):
                    continue  # read within the module
                if used not in copies:
                    self._attribute(used, path, root, graph, copies)
            inputs.append(used)
        results = [n for n in nodes if any(u not in known for u in n.users)]
        number = self.counts[child] = self.counts.get(child, -1) + 1
        name = child.removeprefix(f"{path}.") if path else child
        name = name if number == 0 else f"{name}@{number}"
        made = _Part(self.outer, self.depth + 1).module(nodes, inputs, results, child)
        _add_module(root, name, made)
        call = graph.call_module(name, tuple(copies[i] for i in inputs))
        for i, node in enumerate(results):
            copies[node] = graph.call_function(operator.getitem, (call, i))
            copies[node].meta = dict(node.meta)


def _attribute_of(root: Module, path: str) -> Any:
    for part in path.split("."):
        root = getattr(root, part)
    return root


def _owner(root: Module, path: str) -> tuple[Module, str]:
    folder, _, name = path.rpartition(".")
    for part in filter(None, folder.split(".")):
        if part not in root._modules:
            root.add_module(part, Module())
        root = getattr(root, part)
    return root, name


def _add_module(root: Module, path: str, module: Module) -> None:
    owner, name = _owner(root, path)
    before = owner._modules.get(name)
    owner._modules[name] = module
    for kind in ("_parameters", "_buffers", "_modules") if before is not None else ():
        for key, value in getattr(before, kind).items():
            getattr(module, kind).setdefault(key, value)


def _set_attribute(root: Module, path: str, value: Any) -> None:
    owner, name = _owner(root, path)
    if isinstance(value, Module):
        owner._modules[name] = value
    elif isinstance(value, Tensor) and value.requires_grad and value.is_leaf:
        owner.register_parameter(name, value)
    else:
        owner._buffers[name] = value


class UnflattenedModule(Module):
    """A program as a hierarchy of modules with the names of the original ones.

    A module's inputs are the values that its operators read, and its results the values that others read. A second call of a
    module is another submodule, ``name@1``.
    """

    def __init__(self, export_module: ExportedProgram, flat_args_adapter: FlatArgsAdapter | None = None) -> None:
        super().__init__()
        flat = export_module.module(check_guards=False)
        nodes = list(flat.graph.nodes)
        inputs = [n for n in nodes if n.op == "placeholder"]
        results = list(nodes[-1].args[0])
        body = [n for n in nodes if n.op not in ("placeholder", "output", "get_attr")]
        made = _Part(flat, 0).module(body, inputs, results, "")
        for name, child in made.named_children():
            self.add_module(name, child)
        for registry in ("_parameters", "_buffers"):
            getattr(self, registry).update(getattr(made, registry))
        for name, tensor in (*export_module.named_parameters(), *export_module.named_buffers()):
            add_tensor(self, name, tensor)
        self.graph = made.graph
        self._made = [made]  # in a list, so that it is no submodule
        self._check, self._adapter = export_module._input_check, flat_args_adapter
        signature = export_module.module_call_graph[0].signature
        assert signature is not None
        self._in_spec, self._out_spec = signature.in_spec, signature.out_spec

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the modules for arguments like those of the program."""
        leaves, spec = pytree.tree_flatten((args, kwargs))
        if spec != self._in_spec and self._adapter is not None:
            leaves = self._adapter.adapt(target_spec=self._in_spec, input_spec=spec, input_args=leaves)
            args, kwargs = pytree.tree_unflatten(leaves, self._in_spec)
        if self._check is not None:
            self._check(self, args, kwargs)
        order = self._in_spec.child(1).context or []
        leaves = pytree.tree_leaves((args, {k: kwargs[k] for k in order}))
        return pytree.tree_unflatten(list(self._made[0](*leaves)), self._out_spec)


def unflatten(module: ExportedProgram, flat_args_adapter: FlatArgsAdapter | None = None) -> UnflattenedModule:
    """A module with the program's hierarchy of modules, whose parameters and buffers are those of the program.

    Args:
        flat_args_adapter: changes arguments of another structure.
    """
    if not isinstance(module, ExportedProgram):
        raise TypeError(f"[unflatten] expected an ExportedProgram, got {type(module).__name__}")
    return UnflattenedModule(module, flat_args_adapter)
