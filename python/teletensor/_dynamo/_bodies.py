"""Functions that an operator or a transform calls: each is executed into a graph of its own, a body, which the node receives.

A body is a GraphModule. Its inputs are the tensors that the operator passes, then those of the graphs around it that it uses.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .. import fx
from .._C import Tensor
from ..fx.graph_module import GraphModule
from ._values import Break, Constant, DictValue, SequenceValue, SymbolValue, TensorValue, Value, kind, serials
from ._wrap import is_namedtuple


class Slot:
    """A place in the structure of a body's result that a tensor takes."""

    def __init__(self, index: int) -> None:
        self.index = index


class Body:
    """A graph inside another one.

    Attributes:
        outer: the graph in which its node will be.
        lifted: nodes of the outer graph that the body uses, with the placeholders that stand for them.
        modules: bodies inside of this one, by name.
        begin: the serial number of the first value that belongs to it.
        may_write: whether it may write to objects from outside: the operator calls it exactly once.
    """

    def __init__(self, outer: fx.Graph, may_write: bool) -> None:
        self.graph, self.outer, self.may_write = fx.Graph(), outer, may_write
        self.lifted: dict[fx.Node, fx.Node] = {}
        self.modules: dict[str, GraphModule] = {}
        self.begin = next(serials)
        self._last: fx.Node | None = None
        self._count = 0

    def placeholder(self, name: str) -> fx.Node:
        """Adds an input after those that exist."""
        first = next(iter(self.graph.nodes), None)
        if self._last is not None:
            where: Any = self.graph.inserting_after(self._last)
        else:
            where = contextlib.nullcontext() if first is None else self.graph.inserting_before(first)
        with where:
            self._last = self.graph.placeholder(f"in{self._count}_{name}")
        self._count += 1
        return self._last

    def tensor(self, name: str, example: Any, is_leaf: bool | None = None) -> Value:
        """Adds an input that the operator passes."""
        node = self.placeholder(name)
        if not hasattr(example, "dtype"):
            return SymbolValue(example, ("node", node))
        node.meta["example_value"] = example
        return TensorValue(node, example, Tensor, is_leaf=is_leaf)

    def lift(self, node: fx.Node) -> fx.Node:
        """The input that stands for a node of the outer graph."""
        if node not in self.lifted:
            self.lifted[node] = self.placeholder(node.name)
            self.lifted[node].meta.update(node.meta)
        return self.lifted[node]

    def finish(self, outputs: list[fx.Node]) -> GraphModule:
        """The module of the body, which returns a tuple."""
        self.graph.output(tuple(outputs))
        return GraphModule(self.modules, self.graph, "Body")


class Bodies:
    """A part of Executor.

    Attributes:
        modules: the bodies of the graph of the frame, by name.
    """

    def has_bodies(self) -> bool:
        """Whether a function that an operator calls is executed."""
        return bool(self._bodies)

    def begin_bodies(self) -> None:
        self.modules: dict[str, GraphModule] = {}
        self._bodies: list[Body] = []
        self.root_graph = self.graph

    @contextlib.contextmanager
    def body(self, may_write: bool = False) -> Iterator[Body]:
        """A context in which calls become nodes of a body."""
        if self.uses_unbacked:
            raise Break("a function that an operator calls, after the use of a size that depends on values")
        outer, made = self.graph, Body(self.graph, may_write)
        self.graph = made.graph
        self._bodies.append(made)
        try:
            yield made
        finally:
            self._bodies.pop()
            self.graph = outer

    def add_body(self, module: GraphModule, name: str) -> fx.Node:
        """The node of the current graph that is a body."""
        modules = self._bodies[-1].modules if self._bodies else self.modules
        modules[f"{name}_{len(modules)}"] = module
        return self.graph.create_node("get_attr", f"{name}_{len(modules) - 1}", (), {})

    def here(self, node: fx.Node) -> fx.Node:
        """Returns the current graph's node for `node`, which belongs to this graph or to an enclosing one."""
        return node if node.graph is self.graph else self._lifted(node, len(self._bodies) - 1)

    def _lifted(self, node: fx.Node, at: int) -> fx.Node:
        if at < 0:
            raise Break("a tensor of a function that an operator has called, outside of that function")
        body = self._bodies[at]
        if node.graph is body.graph:
            return node
        return body.lift(node if node.graph is body.outer else self._lifted(node, at - 1))

    def is_here(self, node: fx.Node) -> bool:
        """Whether a node can be used in the current graph."""
        return node.graph is self.root_graph or any(node.graph is b.graph for b in self._bodies)

    def check_write(self, value: Value) -> None:
        """Ends the graph if a body writes to a value from outside that the operator does not allow."""
        for body in self._bodies:
            if not body.may_write and (value.source is not None or value.serial < body.begin):
                raise Break("a write to an object from outside of a function that an operator calls")

    # -- structures

    def leaves(self, value: Value) -> list[Value]:
        """The leaves of nested lists, tuples and dicts; keys of dicts in PyTorch's order, that of insertion."""
        value = self.real(value)
        if isinstance(value, SequenceValue) and (value.cls in (list, tuple) or is_namedtuple(value.cls)):
            return [leaf for item in value.items for leaf in self.leaves(item)]
        if isinstance(value, DictValue):
            return [leaf for _, item in value.items.values() for leaf in self.leaves(item)]
        return [] if isinstance(value, Constant) and value.value is None else [value]

    def rebuilt(self, value: Value, leaves: Iterator[Value]) -> Value:
        """A value of the same structure with other leaves."""
        value = self.real(value)
        if isinstance(value, SequenceValue) and (value.cls in (list, tuple) or is_namedtuple(value.cls)):
            return SequenceValue([self.rebuilt(item, leaves) for item in value.items], value.cls)
        if isinstance(value, DictValue):
            return DictValue({k: (key, self.rebuilt(item, leaves)) for k, (key, item) in value.items.items()}, value.cls)
        return value if isinstance(value, Constant) and value.value is None else next(leaves)

    def structure(self, value: Value) -> Any:
        """What identifies the structure of a value, for comparisons."""
        value = self.real(value)
        if isinstance(value, SequenceValue):
            return (value.cls, *[self.structure(item) for item in value.items])
        if isinstance(value, DictValue):
            return (value.cls, *[(k, self.structure(item)) for k, (_, item) in value.items.items()])
        return (Constant, value.value) if isinstance(value, Constant) else type(value)

    def template(self, value: Value, tensors: list[TensorValue]) -> Any:
        """The result of a body as Python objects with a Slot for each tensor, which are appended to `tensors`."""
        value = self.real(value)
        if isinstance(value, TensorValue):
            tensors.append(value)
            return Slot(len(tensors) - 1)
        if isinstance(value, Constant):
            return value.value
        if isinstance(value, SequenceValue) and value.cls in (list, tuple):
            return value.cls(self.template(item, tensors) for item in value.items)
        if isinstance(value, SequenceValue) and is_namedtuple(value.cls):
            return value.cls(*(self.template(item, tensors) for item in value.items))
        if isinstance(value, DictValue):
            return value.cls((k.value, self.template(v, tensors)) for k, v in value.items.values() if isinstance(k, Constant))
        raise Break(f"a function that an operator calls returns a {kind(value)}")


def fill(template: Any, tensors: Any) -> Any:
    """The object that a template describes."""
    if isinstance(template, Slot):
        return tensors[template.index]
    if isinstance(template, (list, tuple)):
        made = [fill(item, tensors) for item in template]
        return type(template)(*made) if hasattr(template, "_fields") else type(template)(made)
    if isinstance(template, dict):
        return type(template)((k, fill(v, tensors)) for k, v in template.items())
    return template


def same_metadata(a: Any, b: Any) -> bool:
    """Whether two examples are tensors of the same kind and sizes."""
    return a.dtype == b.dtype and a.device == b.device and a.dim() == b.dim() and all(
        a.size(i) == b.size(i) for i in range(a.dim())
    )  # fmt: skip

