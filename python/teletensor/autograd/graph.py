"""Access to the graph that computed a tensor: grad_fn and hooks."""

from __future__ import annotations

import functools
import weakref
from typing import Any, Callable

from .. import _C, _trace_runs
from .._C import Tensor
from .._grad_mode import no_grad, set_grad_enabled
from .._gradients import leaf_hooks, note_hook
from ._graph_names import (
    GradientEdge,
    increment_version,
    queue_callback,
    region_activation_memory_budget,
    register_multi_grad_hook,
    set_override_stale_capture_stream,
    set_warn_on_accumulate_grad_stream_mismatch,
)  # fmt: skip
from ._graph_names import (
    _MultiHandle as _Handles,
)
from ._node_creation import node_creation_hook
from ._node_hooks import NodeHandle, add_after, add_before, replacements
from ._node_values import NodeValues, SavedTensor
from ._saved_tensors import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)
from .function import contexts

__all__ = [
    "GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "get_gradient_edge",
    "increment_version", "node_creation_hook", "queue_callback", "region_activation_memory_budget", "register_multi_grad_hook",
    "save_on_cpu", "saved_tensors_hooks", "set_override_stale_capture_stream", "set_warn_on_accumulate_grad_stream_mismatch",
]  # fmt: skip


class Node:
    """An operation in the graph that computed a tensor: ``tensor.grad_fn``, or a node that follows it.

    Two objects of one node are equal. Nodes belong to the client's copy of the graph: a node of an operation that the engine
    composes of others, such as ``layer_norm``, stands for all of them. Attributes such as ``_saved_self`` and
    ``_raw_saved_result`` have the values that the operation has saved for backward; reading one waits for the engine, which
    finds the node from the tensor whose ``grad_fn`` was read.
    """

    _node: Any
    _tensor: Callable[[], Tensor | None]

    @classmethod
    def _of(cls, node: Any, tensor: Tensor | None = None) -> Node:
        """The object of a node of the client's graph, which the tensor's graph contains."""
        named = _node_class(node.name())
        self = named.__new__(named)
        self._node = node
        self._tensor = (lambda: None) if tensor is None else weakref.ref(tensor)
        return self

    def name(self) -> str:
        """PyTorch's name of the operation's gradient, e.g. ``AddBackward0``; ``torch::autograd::AccumulateGrad`` for a leaf."""
        return f"torch::autograd::{self._node.name()}" if self._is_of_leaf() else self._node.name()

    def _is_of_leaf(self) -> bool:
        return self._node.name() == "AccumulateGrad"

    @property
    def metadata(self) -> dict[str, Any]:
        """A dict for users, which exists as long as the node."""
        return self._node.attributes()

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The nodes that receive the gradients of the operation's tensors, each with the number of its output."""
        return tuple(
            (None if node is None else Node._of(node, self._tensor()), output) for node, output in self._node.next_functions()
        )

    @property
    def variable(self) -> Tensor:
        """The leaf of an ``AccumulateGrad`` node. Raises RuntimeError if it no longer exists."""
        if not self._is_of_leaf():
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'variable'")
        leaf = self._node.leaf()
        if leaf is None:
            raise RuntimeError("the leaf tensor of this node no longer exists")
        return leaf

    def _sequence_nr(self) -> int:
        """Greater for operations that were recorded later; the maximum for leaves."""
        return (1 << 64) - 1 if self._is_of_leaf() else self._node.sequence()

    def _root(self, name: str) -> Tensor:
        """A tensor from which the engine finds the node."""
        tensor = self.variable if self._is_of_leaf() else self._tensor()
        if tensor is None:
            raise NotImplementedError(
                f"[{name}] the tensor from which this node was reached no longer exists: the engine finds a node from a tensor of "
                "its graph; keep the tensor whose grad_fn you read"
            )
        return tensor

    def register_prehook(self, fn: Callable) -> NodeHandle:
        """Calls ``fn(grad_outputs)`` before the node runs, after the hooks of tensors; a tuple replaces the gradients."""
        return add_before(self._node, self._root("register_prehook"), fn)

    def register_hook(self, fn: Callable) -> Any:
        """Calls ``fn(grad_inputs, grad_outputs)`` after the node has run; a tuple replaces grad_inputs.

        A backward pass waits for the engine at each hook of a node.

        Raises:
            NotImplementedError: the engine composes the operation of others, whose gradients do not correspond to its inputs.
        """
        root = self._root("register_hook")
        if not self._is_of_leaf():
            return add_after(self._node, root, fn)
        received: list[tuple] = []
        before = add_before(self._node, root, lambda gradients: received.append(gradients))
        after = root.register_post_accumulate_grad_hook(lambda _: fn((), received.pop()) and None)
        return _Handles((before, after))

    def __getattr__(self, name: str) -> Any:
        context = contexts.get(self._node.stop()) if "_node" in self.__dict__ else None
        if context is not None and name == "_raw_saved_tensors":
            return tuple(SavedTensor.of(lambda i=i: self.saved_tensors[i]) for i in range(len(self.saved_tensors)))
        if context is not None and (not name.startswith("_") or name in context.__dict__):
            with no_grad():  # saved tensors are read as they are
                return getattr(context, name)
        if not name.startswith(("_saved_", "_raw_saved_")) or "_node" not in self.__dict__ or self._node.operator() is None:
            described = type(self).__name__ if "_node" in self.__dict__ else "Node"
            raise AttributeError(f"{described!r} object has no attribute {name!r}")
        return NodeValues(self._node, self._root(name)).value(name)

    def __dir__(self) -> list[str]:
        tensor = self._tensor()
        saved = NodeValues(self._node, tensor).names() if tensor is not None and self._node.operator() is not None else []
        return [*super().__dir__(), *saved]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self._node.key() == other._node.key()

    def __hash__(self) -> int:
        return hash(self._node.key())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {self._node.key():#x}>"


@functools.cache
def _node_class(name: str) -> type[Node]:
    """The class of the nodes of an operation, whose name programs that draw graphs read."""
    return type(name, (Node,), {})


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Returns a tensor's position in its graph, which backward() and grad() accept instead of the tensor.

    The position stays the same when the tensor is written in place. Unlike in PyTorch, the edge keeps the tensor's storage alive.
    """
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    node, output = _C.grad_node(tensor)
    return GradientEdge(Node._of(node, tensor), output, _C.at_present_edge(tensor))


class RemovableHandle:
    """A registered hook, which remove() or the end of a ``with`` block removes."""

    def __init__(self, tensor: Tensor, number: int):
        self.tensor, self.number = tensor, number

    def remove(self) -> None:
        """Removes the hook, so that it is no longer called."""
        if self.tensor is not None:
            _C.remove_hook(self.tensor, self.number)
            leaf_hooks.pop(self.number, None)
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
        if _C.is_tracing() and _trace_runs.refuses_hooks():
            raise NotImplementedError("[trace] a graph of torch.compile cannot contain the hooks of a tensor")
        with set_grad_enabled(create_graph):
            changed = hook(gradients[0])
        if leaf is not None:
            note_hook(leaf, changed is not None)
        return [None] if changed is None else replacements((changed,), (gradients[0],), hook)

    leaf = id(tensor) if tensor.is_leaf else None
    number = _C.add_hook(tensor, run)
    if leaf is not None:  # for sparse gradients, which the engine does not have
        leaf_hooks[number] = (weakref.ref(tensor, lambda _: leaf_hooks.pop(number, None)), hook)
    return RemovableHandle(tensor, number)


def _grad_fn(tensor: Tensor) -> Node | None:
    if _C._is_wrapper(tensor) or not tensor.requires_grad or tensor.is_leaf:
        return None
    return Node._of(_C.grad_node(tensor)[0], tensor)


Tensor.output_nr = property(
    lambda tensor: _C.grad_node(tensor)[1] if tensor.requires_grad and not _C._is_wrapper(tensor) else 0,
    doc="The number of the tensor among the results of its grad_fn; 0 for a leaf.",
)
Tensor.grad_fn = property(_grad_fn, doc="The operation that computed the tensor, or None.")
