"""Access to the graph that computed a tensor: grad_fn and hooks."""

from __future__ import annotations

from typing import Any, Callable

from .. import _C
from .._C import Tensor
from .._grad_mode import set_grad_enabled
from ._graph_names import (
    GradientEdge,
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    get_gradient_edge,
    increment_version,
    node_creation_hook,
    queue_callback,
    region_activation_memory_budget,
    register_multi_grad_hook,
    save_on_cpu,
    saved_tensors_hooks,
    set_override_stale_capture_stream,
    set_warn_on_accumulate_grad_stream_mismatch,
)  # fmt: skip

__all__ = [
    "GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "get_gradient_edge",
    "increment_version", "node_creation_hook", "queue_callback", "region_activation_memory_budget", "register_multi_grad_hook",
    "save_on_cpu", "saved_tensors_hooks", "set_override_stale_capture_stream", "set_warn_on_accumulate_grad_stream_mismatch",
]  # fmt: skip


class Node:
    """A recorded operation, returned by ``tensor.grad_fn``."""

    def __init__(self, name: str, metadata: dict[str, Any] | None = None):
        self._name = name
        self.metadata = {} if metadata is None else metadata  # for users; the nodes of one tensor share it

    def name(self) -> str:
        """PyTorch's name of the operation's gradient, e.g. ``AddBackward0``."""
        return self._name

    def __repr__(self) -> str:
        return f"<{self._name} object>"


class RemovableHandle:
    """A registered hook, which remove() or the end of a ``with`` block removes."""

    def __init__(self, tensor: Tensor, number: int):
        self.tensor, self.number = tensor, number

    def remove(self) -> None:
        """Removes the hook, so that it is no longer called."""
        if self.tensor is not None:
            _C.remove_hook(self.tensor, self.number)
            self.tensor = None

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc) -> None:
        self.remove()


def register_hook(tensor: Tensor, hook: Callable) -> RemovableHandle:
    """Calls ``hook(grad)`` in each backward; a result other than None replaces the gradient."""
    if not tensor.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")

    def run(gradients: list, create_graph: bool) -> list:
        with set_grad_enabled(create_graph):
            return [hook(gradients[0])]

    return RemovableHandle(tensor, _C.add_hook(tensor, run))


def _grad_fn(tensor: Tensor) -> Node | None:
    name = None if _C._is_wrapper(tensor) else _C.node_name(tensor)
    if name is None:
        return None
    known = tensor.__dict__.get("_node_metadata")
    if known is None or known[0] != name:  # an operation in place has given the tensor another node
        known = tensor.__dict__["_node_metadata"] = (name, {})
    return Node(name, known[1])


Tensor.grad_fn = property(_grad_fn, doc="The operation that computed the tensor, or None.")
