"""node_creation_hook: calls a function with the nodes that operations record.

A mode receives each call of a public function, and finds the nodes that its results have and that are newer than the block. Backward
passes report the gradients whose computation they record.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .. import _C
from .._C import Tensor
from .._grad_mode import enable_grad, no_grad
from .._lazy import set_module

_blocks = threading.local()  # hooks: the node_creation_hooks that the thread has entered


def report_gradients(gradients: Iterable[Any]) -> None:
    """Passes the nodes that a backward pass has recorded to the hooks of the thread's blocks."""
    for hook in getattr(_blocks, "hooks", ()):
        hook._report([g for g in gradients if g is not None])


def has_hooks() -> bool:
    """Whether the thread has entered a node_creation_hook."""
    return bool(getattr(_blocks, "hooks", ()))


def leaves_below(roots: Iterable[Tensor]) -> list[Tensor]:
    """The leaves that tensors depend on, and those among the tensors that require a gradient."""
    found = [r for r in roots if isinstance(r, Tensor) and r.grad_fn is None and r.requires_grad]
    pending = [r.grad_fn for r in roots if isinstance(r, Tensor) and r.grad_fn is not None]
    seen = set(pending)
    while pending:
        node = pending.pop()
        if node._is_of_leaf():
            found.append(node.variable)
        children = {child for child, _ in node.next_functions if child is not None and child not in seen}
        seen |= children
        pending += children
    return found


class node_creation_hook:  # noqa: N801 - PyTorch's name
    """Calls ``hook(node)`` for each node of the graph that operations in the ``with`` block record, in their order.

    The hook returns None; it can inspect the node, and register hooks on it. A leaf's AccumulateGrad node is passed when a result
    of the block depends on it for the first time. What a custom Function computes is found when its result is an argument or a result of
    a further function.
    """

    def __init__(self, hook: Callable[[Any], None]):
        self.hook = hook
        self._leaves: dict[int, weakref.ref] = {}

    def __enter__(self) -> None:
        with enable_grad(), _C.DisableTorchFunction():
            self._last = _C.torch.empty((), device="cpu", requires_grad=True).view(()).grad_fn._sequence_nr()
        _C._push_on_torch_function_stack(self)
        _blocks.hooks = (*getattr(_blocks, "hooks", ()), self)

    def __exit__(self, *exc: object) -> None:
        _C._pop_torch_function_stack()
        _blocks.hooks = _blocks.hooks[:-1]
        self._leaves.clear()

    def __torch_function__(self, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        from ..utils._pytree import tree_leaves  # not loaded with the package

        del types
        result = func(*args, **(kwargs or {}))
        self._report([*tree_leaves((args, kwargs)), *tree_leaves(result)])
        return result

    def _report(self, values: list) -> None:
        roots = [v.grad_fn for v in values if isinstance(v, Tensor) and not _C._is_wrapper(v) and v.grad_fn is not None]
        found = {node: None for root in roots for node in self._new(root)}
        operations = sorted((n for n in found if not n._is_of_leaf()), key=lambda n: n._sequence_nr())
        self._last = max([self._last, *(n._sequence_nr() for n in operations)])
        for node in operations:
            for child in dict.fromkeys(n for n, _ in node.next_functions if n is not None and n._is_of_leaf()):
                if self._is_new_leaf(child):
                    self._call(child)
            self._call(node)

    def _call(self, node: Any) -> None:
        with no_grad():
            result = self.hook(node)
        if result is not None:
            raise RuntimeError(f"node creation hook must return None, got {type(result).__name__}")

    def _new(self, root: Any) -> Iterator[Any]:
        """The nodes below `root` that were recorded since the last call."""
        pending, seen = [root], {root}
        while pending:
            node = pending.pop()
            if not node._is_of_leaf() and node._sequence_nr() <= self._last:
                continue
            yield node
            children = [child for child, _ in node.next_functions if child is not None and child not in seen]
            seen.update(children)
            pending += children

    def _is_new_leaf(self, node: Any) -> bool:
        leaf = node.variable
        known = self._leaves.get(id(leaf))
        if known is not None and known() is leaf:
            return False
        self._leaves[id(leaf)] = weakref.ref(leaf)
        return True


set_module("teletensor.autograd.graph", node_creation_hook)
