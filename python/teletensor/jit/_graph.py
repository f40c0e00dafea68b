"""Graphs of traced functions: Graph, Node and Value with the methods that PyTorch's TorchScript graphs have for reading.

A graph is a record: its nodes cannot be changed, compiled or run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from .. import _C
from .._lazy import set_module
from ._graph_types import ListType, TensorType, TupleType, Type, type_of


class Use(NamedTuple):
    """A node that reads a value, and the value's position among its inputs."""

    user: Node
    offset: int


class Value:
    """A value of a graph: an input, or a result of a node."""

    def __init__(self, node: Node, number: int, offset: int, kind: Type) -> None:
        self._node, self._number, self._offset, self._type = node, number, offset, kind
        self._uses: list[Use] = []

    def node(self) -> Node:
        """The node whose result it is; for an input, the graph's node of kind prim::Param."""
        return self._node

    def type(self) -> Type:
        """The value's type."""
        return self._type

    def debugName(self) -> str:  # noqa: N802 - PyTorch's names
        """The value's name in the graph's text."""
        return str(self._number)

    def unique(self) -> int:
        """The value's number, which no other value of the graph has."""
        return self._number

    def offset(self) -> int:
        """The position among the results of its node."""
        return self._offset

    def uses(self) -> list[Use]:
        """The nodes that read the value."""
        return list(self._uses)

    def isCompleteTensor(self) -> bool:  # noqa: N802
        """Whether the value is a tensor whose sizes, strides, dtype and device are known."""
        return isinstance(self._type, TensorType) and self._type.isComplete()

    def requires_grad(self) -> bool:
        """Whether the value is a tensor that requires grad."""
        return isinstance(self._type, TensorType) and self._type.requires_grad()

    requiresGrad = requires_grad  # noqa: N815

    def toIValue(self) -> Any:  # noqa: N802
        """The Python object of a constant; None for other values."""
        return self._node._constant if self._node.kind() == "prim::Constant" else None

    def __repr__(self) -> str:
        return f"{self.debugName()} defined in ({self._node})"


class Node:
    """A call of an operator, or a constant, a list or a tuple."""

    def __init__(
        self, graph: Graph, kind: str, inputs: Sequence[Value], scope: str, constant: Any = None, schema: str = "(no schema)"
    ) -> None:
        self._graph, self._kind, self._inputs, self._scope = graph, kind, list(inputs), scope
        self._constant, self._schema = constant, schema
        self._outputs: list[Value] = []
        for offset, value in enumerate(self._inputs):
            value._uses.append(Use(self, offset))

    def _add_output(self, kind: Type) -> Value:
        value = Value(self, self._graph._next_number(), len(self._outputs), kind)
        self._outputs.append(value)
        return value

    def kind(self) -> str:
        """The operator, such as "aten::linear" or "prim::Constant"."""
        return self._kind

    def schema(self) -> str:
        """The operator's declaration; "(no schema)" if it has none."""
        return self._schema

    def scopeName(self) -> str:  # noqa: N802 - PyTorch's names
        """The scopes that were active, the outermost first, with "/" between them."""
        return self._scope

    def inputs(self) -> Iterator[Value]:
        """The arguments, in the order of the operator's declaration."""
        return iter(self._inputs)

    def outputs(self) -> Iterator[Value]:
        """The results."""
        return iter(self._outputs)

    def inputsSize(self) -> int:  # noqa: N802
        """The number of arguments."""
        return len(self._inputs)

    def outputsSize(self) -> int:  # noqa: N802
        """The number of results."""
        return len(self._outputs)

    def inputsAt(self, i: int) -> Value:  # noqa: N802
        """An argument."""
        return self._inputs[i]

    def outputsAt(self, i: int) -> Value:  # noqa: N802
        """A result."""
        return self._outputs[i]

    def input(self) -> Value:
        """The only argument. Raises RuntimeError unless there is exactly one."""
        return self._only(self._inputs, "input")

    def output(self) -> Value:
        """The only result. Raises RuntimeError unless there is exactly one."""
        return self._only(self._outputs, "output")

    def _only(self, values: list[Value], what: str) -> Value:
        if len(values) != 1:
            raise RuntimeError(f"[{self._kind}] expected one {what}, got {len(values)}")
        return values[0]

    def blocks(self) -> Iterator[Any]:
        """The nested blocks: none, because a trace has no control flow."""
        return iter(())

    def mustBeNone(self) -> bool:  # noqa: N802
        """Whether the node is the constant None."""
        return self._kind == "prim::Constant" and self._constant is None

    # -- the attribute "value" of a constant

    def hasAttributes(self) -> bool:  # noqa: N802
        """Whether the node is a constant other than None."""
        return self._kind == "prim::Constant" and self._constant is not None

    def hasAttribute(self, name: str) -> bool:  # noqa: N802
        """Whether the node has the attribute: "value", for a constant other than None."""
        return name == "value" and self.hasAttributes()

    def attributeNames(self) -> list[str]:  # noqa: N802
        """The names of the attributes."""
        return ["value"] if self.hasAttributes() else []

    def kindOf(self, name: str) -> str:  # noqa: N802
        """The attribute's kind: i (int or bool), f (float), s (str or device), c (complex), t (tensor) or ival."""
        value = self._attribute(name)
        kinds = ((int, "i"), (float, "f"), (str, "s"), (complex, "c"), (_C.Tensor, "t"), (_C.device, "s"))
        return next((kind for python, kind in kinds if isinstance(value, python)), "ival")

    def _attribute(self, name: str, kind: str | None = None) -> Any:
        if not self.hasAttribute(name):
            raise RuntimeError(f"required keyword attribute '{name}' is undefined")
        if kind is not None and self.kindOf(name) != kind:
            raise RuntimeError(f"[{self._kind}] expected an attribute of kind {kind}, got {self.kindOf(name)}")
        return self._constant

    def i(self, name: str) -> int:
        """An attribute that is an int or a bool, as int."""
        return int(self._attribute(name, "i"))

    def f(self, name: str) -> float:
        """An attribute that is a float."""
        return self._attribute(name, "f")

    def s(self, name: str) -> str:
        """An attribute that is a str or a device, as str."""
        return str(self._attribute(name, "s"))

    def c(self, name: str) -> complex:
        """An attribute that is a complex number."""
        return self._attribute(name, "c")

    def t(self, name: str) -> Any:
        """An attribute that is a tensor."""
        return self._attribute(name, "t")

    def _value_text(self) -> str:
        value = self._constant
        if isinstance(value, _C.Tensor):
            return "<Tensor>" if value.dim() else f"{{{value.item()}}}"
        if isinstance(value, (str, _C.device)):
            return f'"{value}"'
        return str(int(value)) if isinstance(value, bool) else repr(value)

    def __repr__(self) -> str:
        results = ", ".join(f"%{v.debugName()} : {v.type().str()}" for v in self._outputs)
        attributes = f"[value={self._value_text()}]" if self.hasAttributes() else ""
        arguments = ", ".join(f"%{v.debugName()}" for v in self._inputs)
        scope = f", scope: {self._scope}" if self._scope else ""
        return f"{results} = {self._kind}{attributes}({arguments}){scope}\n"

    __str__ = __repr__


class Graph:
    """The operators that a function called, in their order, with its inputs and outputs. Made by _get_trace_graph()."""

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._count = 0
        self._param, self._return = Node(self, "prim::Param", (), ""), Node(self, "prim::Return", (), "")

    def _next_number(self) -> int:
        self._count += 1
        return self._count - 1

    def _add_input(self, kind: Type) -> Value:
        return self._param._add_output(kind)

    def _add(self, kind: str, inputs: Sequence[Value], results: Sequence[Type], scope: str, schema: str = "(no schema)") -> Node:
        node = Node(self, kind, inputs, scope, schema=schema)
        for result in results:
            node._add_output(result)
        self._nodes.append(node)
        return node

    def _add_constant(self, value: Any, scope: str) -> Value:
        node = Node(self, "prim::Constant", (), scope, constant=value)
        self._nodes.append(node)
        return node._add_output(type_of(value))

    def _add_list(self, values: Sequence[Value], element: Type, scope: str) -> Value:
        return self._add("prim::ListConstruct", values, [ListType(element)], scope)._outputs[0]

    def _add_tuple(self, values: Sequence[Value], scope: str) -> Value:
        return self._add("prim::TupleConstruct", values, [TupleType([v.type() for v in values])], scope)._outputs[0]

    def _register_output(self, value: Value) -> None:
        value._uses.append(Use(self._return, len(self._return._inputs)))
        self._return._inputs.append(value)

    def nodes(self) -> Iterator[Node]:
        """The nodes in the order in which they ran, without those of the inputs and the outputs."""
        return iter(self._nodes)

    def inputs(self) -> Iterator[Value]:
        """The inputs: the tensors among the arguments, then the module's parameters and buffers."""
        return iter(self._param._outputs)

    def outputs(self) -> Iterator[Value]:
        """The results of the function."""
        return iter(self._return._inputs)

    def param_node(self) -> Node:
        """The node whose results are the graph's inputs."""
        return self._param

    def return_node(self) -> Node:
        """The node whose arguments are the graph's outputs."""
        return self._return

    def findAllNodes(self, kind: str, recurse: bool = True) -> list[Node]:  # noqa: N802 - PyTorch's names
        """The nodes of a kind. ``recurse`` has no effect, because there are no nested blocks."""
        return [node for node in self._nodes if node.kind() == kind]

    def findNode(self, kind: str, recurse: bool = True) -> Node | None:  # noqa: N802
        """The first node of a kind, or None. ``recurse`` has no effect."""
        return next((node for node in self._nodes if node.kind() == kind), None)

    def __repr__(self) -> str:
        inputs = ",\n      ".join(f"%{v.debugName()} : {v.type().str()}" for v in self.inputs())
        results = ", ".join(f"%{v.debugName()}" for v in self.outputs())
        return f"graph({inputs}):\n" + "".join(f"  {node}" for node in self._nodes) + f"  return ({results})\n"

    __str__ = __repr__
    str = __repr__


set_module("teletensor", Graph, Node, Use, Value)
