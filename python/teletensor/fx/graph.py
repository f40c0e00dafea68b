"""Graph: a function as a list of nodes in order of execution."""

from __future__ import annotations

import contextlib
import copy
import inspect
import warnings
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Callable

from ._codegen import (  # noqa: F401 - PyTorch defines them here
    GRAPH_PLACEHOLDER,
    RECORD_GRAPH,
    CodeGen,
    PythonCode,
    TransformCodeFunc,
    _format_target,
    _parse_stack_trace,
    _ParsedStackTrace,
    _PyTreeCodeGen,
    _PyTreeInfo,
    inplace_methods,
    magic_methods,
    reflectable_magic_methods,
)  # fmt: skip
from ._lint import lint
from ._names import is_from_torch as _is_from_torch  # noqa: F401
from ._namespace import (  # noqa: F401
    _custom_builtins,
    _CustomBuiltin,
    _is_magic,
    _Namespace,
    _register_custom_builtin,
    _snake_case,
)  # fmt: skip
from ._symbolic_sizes import SymbolicSizes
from .immutable_collections import immutable_dict
from .node import Argument, Node, Target, _get_qualified_name, _legal_ops, _type_repr, map_arg  # noqa: F401

if TYPE_CHECKING:
    from .graph_module import GraphModule

__all__ = ["PythonCode", "CodeGen", "Graph"]

_STRIDE = 1 << 32  # distance between the positions of nodes that are added at the end


class _InsertPoint:
    """The position of new nodes until the `with` block ends."""

    def __init__(self, graph: Graph, new_insert: Callable[[Node], None]) -> None:
        self.graph = graph
        self.orig_insert, graph._insert = graph._insert, new_insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_exc: Any) -> None:
        self.graph._insert = self.orig_insert


class _node_list:  # noqa: N801 - PyTorch's name
    """The nodes in order. Nodes may be added and erased during iteration."""

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        if direction not in ("_next", "_prev"):
            raise AssertionError(f"direction must be '_next' or '_prev', got {direction}")
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        root, direction = self.graph._root, self.direction
        node = getattr(root, direction)
        while node is not root:
            # An erased node keeps its neighbours in `_detached`, so that the iteration continues after it.
            if not node._erased:
                yield node
            node = node._detached[direction == "_next"] if node._erased else getattr(node, direction)

    def __reversed__(self) -> Iterator[Node]:
        return iter(_node_list(self.graph, "_prev" if self.direction == "_next" else "_next"))


class _FindNodesLookupTable:
    """The nodes of a graph by opcode, and for call_function by target."""

    def __init__(self) -> None:
        self.table: dict[tuple, dict[Node, None]] = defaultdict(dict)

    @staticmethod
    def _key(node: Node) -> tuple:
        return node.op, node.target if node.op == "call_function" else None

    def __contains__(self, node: Node) -> bool:
        return node in self.table[self._key(node)]

    def insert(self, node: Node) -> None:
        self.table[self._key(node)][node] = None

    def remove(self, node: Node) -> None:
        self.table[self._key(node)].pop(node)

    def find_nodes(self, *, op: str, target: Target | None = None) -> list[Node]:
        if op == "call_function":
            if target is None:
                raise AssertionError("target must not be None for call_function op")
            return list(self.table[(op, target)])
        return [node for node in self.table[(op, None)] if target is None or node.target == target]


class Graph(SymbolicSizes):
    """A function as a list of nodes in order of execution.

    Methods that create nodes insert them at the insertion point: the end, or where inserting_before() and
    inserting_after() set it.

    Args:
        owning_module: the GraphModule that the graph belongs to.
        tracer_cls: the class that traced it, which pickled modules use again.
        tracer_extras: keyword arguments of that class's trace().
    """

    def __init__(
        self, owning_module: GraphModule | None = None, tracer_cls: type | None = None, tracer_extras: dict | None = None
    ) -> None:
        self._find_nodes_lookup_table = _FindNodesLookupTable()
        self._owning_module = owning_module
        self._root = Node(self, "", "root", "", (), {})
        self._insert = self._root.prepend
        self._len = 0
        self._graph_namespace = _Namespace()
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self._codegen = CodeGen()
        self._co_fields: dict[str, Any] = {}

    # -- content

    @property
    def owning_module(self) -> GraphModule | None:
        """The GraphModule that the graph belongs to, or None."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, module: GraphModule | None) -> None:
        self._owning_module = module

    @property
    def nodes(self) -> _node_list:
        """The nodes in order; reversed() iterates backwards."""
        return _node_list(self)

    def output_node(self) -> Node:
        """The last node, which is the output."""
        node = self._root._prev
        if node.op != "output":
            raise AssertionError(f"Expected output node, got op={node.op}")
        return node

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """The nodes of an opcode and target, without searching the graph.

        Args:
            target: required for call_function; None finds all nodes of another opcode.
            sort: returns them in the graph's order.
        """
        found = self._find_nodes_lookup_table.find_nodes(op=op, target=target)
        return sorted(found) if sort else found

    def _number(self, node: Node) -> None:
        """Sets the position of a node that was linked between two others."""
        before = node._prev._sort_key
        after = before + 2 * _STRIDE if node._next is self._root else node._next._sort_key
        node._sort_key = (before + after) // 2
        if not before < node._sort_key < after:
            for i, n in enumerate(self.nodes, 1):
                n._sort_key = i * _STRIDE

    # -- creation

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple | None = None,
        kwargs: dict | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Adds a node at the insertion point.

        Args:
            op: the opcode; see Node.
            name: its name, numbered if another node has it; by default it is made from the target.
            type_expr: the annotation of the result.
        """
        if not args:
            args = ()
        elif not isinstance(args, tuple):
            raise AssertionError(f"args must be a tuple, got {type(args)}")
        if not kwargs:
            kwargs = immutable_dict()
        elif not isinstance(kwargs, dict):
            raise AssertionError(f"kwargs must be a dict, got {type(kwargs)}")
        candidate = name if name is not None else self._target_to_str(target)
        name = self._graph_namespace.create_name(candidate, None)
        node = Node(self, name, op, target, args, kwargs, type_expr)
        for hook in getattr(self._owning_module, "_create_node_hooks", None) or []:
            hook(node)
        self._graph_namespace.associate_name_with_obj(name, node)
        self._insert(node)
        self._find_nodes_lookup_table.insert(node)
        self._len += 1
        return node

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = inspect.Signature.empty) -> Node:
        """Adds an input. `name` may start with * or **."""
        args = () if default_value is inspect.Signature.empty else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Adds a node for a parameter, buffer or submodule; warns if the owning module has no attribute of that name.
        """
        if self.owning_module is not None and not _has_reference(self.owning_module, qualified_name):
            warnings.warn(
                "Attempted to insert a get_attr Node with no underlying reference in the owning GraphModule! Call "
                "GraphModule.add_submodule to add the necessary submodule, GraphModule.add_parameter to add the necessary "
                "Parameter, or nn.Module.register_buffer to add the necessary buffer",
                stacklevel=2,
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self, module_name: str, args: tuple | None = None, kwargs: dict | None = None, type_expr: Any = None
    ) -> Node:
        """Adds a call of a submodule.

        Raises:
            AttributeError: the owning module has no submodule of that name.
        """
        if self.owning_module is not None:
            self.owning_module.get_submodule(module_name)
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self, method_name: str, args: tuple | None = None, kwargs: dict | None = None, type_expr: Any = None
    ) -> Node:
        """Adds a call of a method of args[0]."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable,
        args: tuple | None = None,
        kwargs: dict | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """Adds a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """Adds the output."""
        return self.create_node("output", "output", args=(result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda x: x) -> Node:
        """Adds a copy of another graph's node.

        Args:
            arg_transform: returns this graph's node for a node in the arguments.
        """
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        copied = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        copied.meta = copy.copy(node.meta)
        return copied

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Argument | None:
        """Adds copies of all nodes of another graph but its output.

        Args:
            val_map: this graph's nodes for nodes of `g`; extended by the copied nodes.
            return_output_node: also returns the output node of `g`.

        Returns:
            The value of the output in this graph; None if `g` has none.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                value = map_arg(node.args[0], lambda n: val_map[n])
                return (value, node) if return_output_node else value
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: dict | None = None) -> Graph:
        g = Graph(tracer_cls=self._tracer_cls)
        memo = memo or {}
        found = g.graph_copy(self, memo, return_output_node=True)
        g._codegen = copy.deepcopy(self._codegen)
        if found is not None:
            value, old = found
            g.output(value, type_expr=old.type).meta = copy.copy(old.meta)
        return g

    def _target_to_str(self, target: Target) -> str:
        """A name for the result of a call of the target."""
        name = target.__name__ if callable(target) else target
        if not isinstance(name, str):
            raise AssertionError(f"Expected target to be str, got {type(target)}")
        return _snake_case(name[2:-2] if not callable(target) and _is_magic(name) else name)

    # -- changes

    def erase_node(self, to_erase: Node) -> None:
        """Removes a node that has no users.

        Raises:
            RuntimeError: it has users, or belongs to another graph.
        """
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            warnings.warn(f"erase_node({to_erase}) on an already erased node", stacklevel=2)
            return
        for hook in getattr(self._owning_module, "_erase_node_hooks", None) or []:
            hook(to_erase)
        self._find_nodes_lookup_table.remove(to_erase)
        to_erase._detached = (to_erase._prev, to_erase._next)
        to_erase._remove_from_list()
        to_erase._erased = True
        self._len -= 1
        to_erase._update_args_kwargs(map_arg(to_erase._args, lambda _: None), map_arg(to_erase._kwargs, lambda _: None))

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Sets the insertion point before a node, or at the start: ``with graph.inserting_before(node): ...``."""
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Sets the insertion point after a node, or at the end: ``with graph.inserting_after(node): ...``."""
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        return _InsertPoint(self, n.append)

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Removes nodes whose results are not used.

        Args:
            is_impure_node: returns whether a node must be kept; Node.is_impure() if None.

        Returns:
            Whether a node was removed.
        """
        self.lint()
        keep = is_impure_node or (lambda node: node.is_impure())
        before = len(self.nodes)
        for node in reversed(self.nodes):
            if not node.users and not keep(node):
                self.erase_node(node)
        changed = len(self.nodes) < before
        if self.owning_module is not None:
            used = {node.target for node in self.find_nodes(op="get_attr")}
            for name, child in self.owning_module.named_children():
                if name in used and isinstance(getattr(child, "graph", None), Graph):
                    changed |= child.graph.eliminate_dead_code()
                    child.recompile()
        return changed

    def _clear_nodes(self) -> None:
        for node in reversed(self.nodes):
            node.meta.clear()
            self.erase_node(node)

    def lint(self) -> None:
        """Checks that the nodes belong to the graph, come after their inputs, and that targets exist in the owning module.

        Raises:
            RuntimeError, ValueError: they do not.
        """
        lint(self)

    # -- code and text

    def process_inputs(self, *args: Any) -> Any:
        """The values of the placeholders for a call's arguments."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """A call's result for the value of the output."""
        return self._codegen.process_outputs(out)

    def set_codegen(self, codegen: CodeGen) -> None:
        """Sets the object that writes the graph as source."""
        self._codegen = codegen

    def on_generate_code(self, make_transformer: Callable[[TransformCodeFunc | None], TransformCodeFunc]) -> Any:
        """Registers a function that changes the lines of the generated body.

        Args:
            make_transformer: returns the function for the one registered before it, or None.

        Returns:
            A context manager that registers the former function again when it exits.
        """
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)

        @contextlib.contextmanager
        def restored() -> Iterator[None]:
            try:
                yield
            finally:
                self._codegen._body_transformer = before

        return restored()

    def python_code(
        self,
        root_module: str,
        *,
        verbose: bool = False,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        expanded_def: bool = False,
        record_func: bool = False,
        additional_meta: list[str] | None = None,
    ) -> PythonCode:
        """The graph as the source of a method `forward`.

        Args:
            root_module: the expression for the module whose submodules are called: "self".
            verbose: adds the source lines and the tensors that were recorded.
            include_stride, include_device: prints them too.
            colored: adds terminal colors.
            expanded_def: prints one parameter per line.
            record_func: encloses the function, and each call of a node, in a range for profiles: the name of the graph's
                file, and the node's index.
            additional_meta: keys of `meta` to print.
        """
        namespace = _Namespace()
        nodes = list(self.nodes)
        before = [node._repr_fn for node in nodes]
        for node in nodes:
            node._repr_fn = lambda n: namespace.create_name(n.name, n)
        try:
            return self._codegen._gen_python_code(
                self.nodes, root_module, namespace, verbose=verbose, include_stride=include_stride,
                include_device=include_device, colored=colored, expanded_def=expanded_def, record_func=record_func,
                additional_meta=additional_meta,
            )  # fmt: skip
        finally:
            for node, repr_fn in zip(nodes, before):
                node._repr_fn = repr_fn

    def __str__(self) -> str:
        parameters: list[str] = []
        lines = [node.format_node(parameters) for node in self.nodes]
        return f"graph({', '.join(parameters)}):" + "".join(f"\n    {line}" for line in lines if line)

    def print_tabular(self) -> None:
        """Prints the nodes as a table."""
        from ._table import table

        rows = [[n.op, n.name, n.target, n.args, n.kwargs] for n in self.nodes]
        print(table(rows, ["opcode", "name", "target", "args", "kwargs"]))


def _has_reference(module: Any, qualified_name: str) -> bool:
    """Whether a module has a submodule, parameter or buffer of that name."""
    from .. import nn

    path, _, name = qualified_name.rpartition(".")
    try:
        owner = module.get_submodule(path)
    except AttributeError:
        warnings.warn(f"Failed to fetch module {path}!", stacklevel=3)
        return False
    return isinstance(getattr(owner, name, None), (nn.Module, nn.Parameter)) or name in owner._buffers
