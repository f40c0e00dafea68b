"""Nodes and attributes of exported graphs: what the passes of quantization share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...._C import Tensor
from ....fx import GraphModule, Node
from ....nn import Module, Parameter
from .._fake_quantize import FakeQuantizeBase
from .._observer_base import ObserverBase


def observer_of(model: GraphModule, node: Any) -> Any:
    """The observer or FakeQuantize that a node calls, or None."""
    if not isinstance(node, Node) or node.op != "call_module":
        return None
    module = model.get_submodule(str(node.target))
    return module if isinstance(module, (ObserverBase, FakeQuantizeBase)) else None


def without_observers(model: GraphModule, node: Node) -> Node:
    """The node whose result reaches a node through observers only."""
    while observer_of(model, node) is not None:
        node = node.args[0]
    return node


def is_constant(node: Any) -> bool:
    """Whether a node is a tensor of the module."""
    return isinstance(node, Node) and node.op == "get_attr"


def _owner(model: Module, target: str) -> tuple[Module, str]:
    path, _, name = target.rpartition(".")
    return model.get_submodule(path), name


def constant(model: GraphModule, node: Any) -> Tensor | None:
    """The tensor of a get_attr node; None for None."""
    if node is None:
        return None
    return get_tensor(model, str(node.target))


def uses(model: GraphModule, node: Node | None) -> list[Node]:
    """The nodes that read the same attribute of the module as a node."""
    same = (n for n in model.graph.nodes if node is not None and is_constant(n) and n.target == node.target)
    return [user for n in same for user in n.users]


def get_tensor(model: Module, target: str) -> Tensor:
    """A tensor of the module by its name."""
    owner, name = _owner(model, target)
    return getattr(owner, name)


def set_parameter(model: GraphModule, target: str, value: Tensor, requires_grad: bool) -> None:
    """Replaces or adds a parameter."""
    owner, name = _owner(model, target)
    owner._parameters.pop(name, None)
    setattr(owner, name, Parameter(value, requires_grad=requires_grad))


def add_buffer(model: GraphModule, prefix: str, value: Tensor) -> str:
    """Adds a buffer with the first free number to the module; returns its name."""
    name = next(n for n in numbered(prefix) if not hasattr(model, n))
    model.register_buffer(name, value)
    return name


def numbered(prefix: str) -> Iterator[str]:
    """The prefix with 0, 1, 2, ..."""
    count = 0
    while True:
        yield f"{prefix}{count}"
        count += 1


def argument(node: Node, index: int, default: Any = None) -> Any:
    """A positional argument of a call, or its default."""
    return node.args[index] if index < len(node.args) else default
