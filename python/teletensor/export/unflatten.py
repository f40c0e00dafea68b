"""unflatten(): a program as a hierarchy of modules, by the modules that called its operators."""

from __future__ import annotations

import abc
import itertools
import operator
from typing import Any

from .._C import Tensor
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..fx.node import Node, map_arg
from ..nn import Module
from ..utils import _pytree as pytree
from .exported_program import ExportedProgram, ModuleCallSignature, add_tensor
from .graph_signature import ConstantArgument

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


class Signatures:
    """The signatures of calls that a program preserves, by the module's name and the number of the call."""

    def __init__(self, program: ExportedProgram, nodes: list[Node]) -> None:
        self.known = {e.fqn: e.signature for e in program.module_call_graph[1:] if e.signature is not None}
        self.nodes = {n.name: n for n in nodes}

    def of(self, name: str) -> ModuleCallSignature | None:
        """The signature of a call: `name`, or `name@1` and so on for further ones."""
        return self.known.get(name)


class _Preserved(Module):
    """A module that is called as the original one was: its arguments and results have the original structure."""

    def __init__(self, flat: GraphModule, signature: ModuleCallSignature, places: list[int | None]) -> None:
        super().__init__()
        self.__dict__.update(_flat=flat, _signature=signature, _places=places)
        self.__dict__.update({k: flat.__dict__[k] for k in ("_parameters", "_buffers", "_modules")})

    @property
    def graph(self) -> Graph:
        """The graph, whose inputs are the tensors among the arguments."""
        return self._flat.graph

    def _interface(self) -> tuple:
        """The structures of arguments and results, and what is constant among them."""
        leaves = (*self._signature.inputs, *self._signature.outputs)
        constants = [a.value if isinstance(a, ConstantArgument) else None for a in leaves]
        return self._signature.in_spec, self._signature.out_spec, constants

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the operators for arguments like those of the exported call."""
        leaves, spec = pytree.tree_flatten((args, kwargs))
        if spec != self._signature.in_spec:
            raise ValueError(f"[unflatten] expected arguments of the structure {self._signature.in_spec}, got {spec}")
        given: dict[int, Any] = {}
        for leaf, place, argument in zip(leaves, self._places, self._signature.inputs):
            if place is not None:
                given[place] = leaf
            elif leaf != argument.value:
                raise ValueError(f"[unflatten] expected the exported argument {argument.value!r}, got {leaf!r}")
        values = self._flat(*(given[i] for i in range(len(given))))
        return pytree.tree_unflatten(list(values), self._signature.out_spec)


def _same(a: Any, b: Any) -> bool:
    """Whether two modules have the same code, which uses the same tensors, and both or none of them a signature."""
    if not hasattr(a, "graph") or not hasattr(b, "graph"):
        return a is b
    if isinstance(a, _Preserved) != isinstance(b, _Preserved) or _form(a.graph) != _form(b.graph):
        return False
    if isinstance(a, _Preserved) and (a._places != b._places or a._interface() != b._interface()):
        return False
    used = [n.target for n in a.graph.nodes if n.op in ("get_attr", "call_module")]
    return all(_same(_attribute_of(a, name), _attribute_of(b, name)) for name in used)


def _form(graph: Graph) -> list[Any]:
    """The nodes without their names."""
    numbers = {n: i for i, n in enumerate(graph.nodes)}

    def plain(value: Any) -> Any:
        return map_arg(value, lambda n: ("node", numbers[n]))

    return [(n.op, None if n.op == "placeholder" else n.target, repr(plain(n.args)), repr(plain(n.kwargs))) for n in graph.nodes]


class _Part:
    """The graph of one call of a module."""

    def __init__(self, outer: GraphModule, depth: int, signatures: Signatures) -> None:
        self.outer, self.depth, self.signatures = outer, depth, signatures
        self.counts: dict[str, int] = {}
        self.made: dict[str, dict[str, Any]] = {}

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
            end = self._end(nodes, at, child)
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
        number = self.counts[child] = self.counts.get(child, -1) + 1
        signature = self.signatures.of(f"{child}@{number}" if number else child)
        inputs: list[Any] = []
        for used in dict.fromkeys(i for n in nodes for i in n.all_input_nodes if i not in known):
            if used.op == "get_attr":
                if used.target.startswith(f"{child}.") or isinstance(_attribute_of(self.outer, used.target), GraphModule):
                    continue  # read within the module
                if used not in copies:
                    self._attribute(used, path, root, graph, copies)
            inputs.append(used)
        results = [n for n in nodes if any(u not in known for u in n.users)]
        if signature is not None:
            inputs, results = self._preserved(child, signature, inputs, results)
        name = child.removeprefix(f"{path}.") if path else child
        given = [i for i in dict.fromkeys(inputs) if isinstance(i, Node)]
        made = _Part(self.outer, self.depth + 1, self.signatures).module(nodes, given, results, child)
        if signature is not None:
            made = _Preserved(made, signature, [given.index(i) if isinstance(i, Node) else None for i in inputs])
        name = self._added(root, name, made, number)
        if signature is None:
            call = graph.call_module(name, tuple(copies[i] for i in inputs))
        else:
            args, kwargs = pytree.tree_unflatten([copies[i] if isinstance(i, Node) else i for i in inputs], signature.in_spec)
            call = graph.call_function(pytree.tree_leaves, (graph.call_module(name, args, kwargs),))
        for i, node in enumerate(results):
            if isinstance(node, Node) and node in known:
                copies[node] = graph.call_function(operator.getitem, (call, i))
                copies[node].meta = dict(node.meta)

    def _added(self, root: Module, name: str, made: Any, number: int) -> str:
        """Adds the module of a call; one that equals a former call's is that one."""
        owner, last = _owner(root, name)
        before = owner._modules.get(last)
        modules = self.made.setdefault(name, {name: before} if hasattr(before, "graph") else {})
        for known, other in modules.items():
            if _same(made, other):
                return known
        labels = (f"{name}@{i}" if i else name for i in itertools.count(number))
        label = next(label for label in labels if label not in modules)
        _add_module(root, label, made)
        modules[label] = made
        return label

    def _end(self, nodes: list[Node], at: int, child: str) -> int:
        """Where the call of a submodule ends. A call that follows immediately is another one if its signature is known."""
        number = self.counts.get(child, -1) + 1
        following = self.signatures.of(f"{child}@{number + 1}")
        own = self.signatures.of(f"{child}@{number}" if number else child)
        end = at
        while end < len(nodes) and self._child(nodes[end]) == child:
            end += 1
        if following is None or own is None:
            return end
        mine = {a.name for a in own.outputs if not isinstance(a, ConstantArgument)}
        places = [i for i in range(at, end) if nodes[i].name in mine]
        return places[-1] + 1 if places else end

    def _preserved(self, child: str, signature: ModuleCallSignature, used: list[Node], results: list[Node]) -> tuple[list, list]:
        """The arguments and results of a call whose signature is known: nodes, and constants as values."""
        nodes = self.signatures.nodes

        def value(argument: Any) -> Any:
            if isinstance(argument, ConstantArgument):
                return argument.value
            if argument.name not in nodes:
                raise RuntimeError(f"[unflatten] expected a value of the graph in the signature of {child}, got {argument.name}")
            return nodes[argument.name]

        counts = [(len(signature.inputs), signature.in_spec.num_leaves), (len(signature.outputs), signature.out_spec.num_leaves)]
        if any(a != b for a, b in counts):
            raise RuntimeError(f"[unflatten] expected as many values as the structures of {child} have, got {counts}")
        inputs, outputs = [value(a) for a in signature.inputs], [value(a) for a in signature.outputs]
        missing = [n for n in used if n not in inputs] + [n for n in results if n not in outputs]
        if missing:
            raise NotImplementedError(f"[unflatten] {child} exchanges {', '.join(map(str, missing))} with others, beyond its signature")
        return inputs, outputs


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
    if before is not None:
        _add_attributes(module, before)


def _add_attributes(module: Module, before: Module) -> None:
    """Adds the attributes that calls of `module` do not use, but others do."""
    for kind in ("_parameters", "_buffers", "_modules"):
        for key, value in getattr(before, kind).items():
            own = getattr(module, kind).setdefault(key, value)
            if kind == "_modules" and own is not value:
                if hasattr(value, "graph") and not _same(own, value):
                    raise NotImplementedError(f"[unflatten] {key} computes something else in the module that contains it")
                _add_attributes(own, value)


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

    A module's inputs are the values that its operators read, and its results the values that others read; those of modules in
    export's preserve_module_call_signature are the original ones, so that another module can be assigned in their place. A second call
    of a module that computes something else than the first one is another submodule, ``name@1``.
    """

    def __init__(self, export_module: ExportedProgram, flat_args_adapter: FlatArgsAdapter | None = None) -> None:
        super().__init__()
        flat = export_module.module(check_guards=False)
        nodes = list(flat.graph.nodes)
        inputs = [n for n in nodes if n.op == "placeholder"]
        results = list(nodes[-1].args[0])
        body = [n for n in nodes if n.op not in ("placeholder", "output", "get_attr")]
        made = _Part(flat, 0, Signatures(export_module, nodes)).module(body, inputs, results, "")
        for registry in ("_parameters", "_buffers", "_modules"):  # shared, so that modules can be replaced
            self.__dict__[registry] = made.__dict__[registry]
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
