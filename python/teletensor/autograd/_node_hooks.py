"""Hooks of nodes: register_hook and register_prehook of `grad_fn` and of the nodes that it leads to."""

from __future__ import annotations

import weakref
from typing import Any, Callable

from .._C import Tensor
from .._grad_mode import set_grad_enabled

BEFORE, AFTER = 1, 2  # kinds of the operator graph_hook
# Operators whose further results are indices, which have no gradients.
_WITH_INDICES = frozenset((
    "max_dim", "min_dim", "median_dim", "nanmedian_dim", "sort", "sort_stable", "topk", "kthvalue", "mode", "cummax", "cummin",
    "max_pool1d_with_indices", "max_pool2d_with_indices", "max_pool3d_with_indices",
))  # fmt: skip


class NodeHandle:
    """A registered hook of a node, which remove() or the end of a ``with`` block removes."""

    def __init__(self, node: Any, root: Tensor, number: int):
        self.node, self.number = node, number
        self.root = weakref.ref(root)

    def remove(self) -> None:
        """Removes the hook, so that it is no longer called."""
        if self.node is not None:
            self.node.remove_hook(self.root(), self.number)
            self.node = None

    def __enter__(self) -> NodeHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


def _outputs(node: Any, gradients: list) -> tuple:
    """The gradients of a node's results. The engine's node may have further results, which no code can read."""
    is_single = node.operator() in _WITH_INDICES or (node.is_composite() and node.outputs() == 1)
    return tuple(gradients[:1] if is_single else gradients)


def replacements(result: Any, before: tuple, fn: Callable) -> list:
    """The gradients that a hook has returned. Raises PyTorch's errors unless they can replace those `before`."""
    if not isinstance(result, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(result).__name__}'")
    name = getattr(fn, "__name__", str(fn))
    if len(result) != len(before):
        raise RuntimeError(
            f"hook '{name}' has returned an incorrect number of values (got {len(result)}, but expected {len(before)})"
        )
    for old, new in zip(before, result):
        if new is None:
            continue
        if old is None:
            raise RuntimeError("can't replace a None gradient with a non-None value")
        if not isinstance(new, Tensor):
            raise TypeError(f"expected Variable, but hook returned '{type(new).__name__}'")
        if new.dtype != old.dtype:
            raise RuntimeError(f"hook '{name}' has changed the type of value (was {old.type()} got {new.type()})")
        if new.shape != old.shape:
            raise RuntimeError(f"hook '{name}' has changed the size of value")
    return list(result)


def add_before(node: Any, root: Tensor, fn: Callable) -> NodeHandle:
    """Calls ``fn(grad_outputs)`` before the node runs; its result, if not None, replaces the gradients."""

    def run(gradients: list, create_graph: bool) -> list:
        outputs = _outputs(node, gradients)
        with set_grad_enabled(create_graph):
            result = fn(outputs)
        if result is None:
            return gradients
        return [*replacements(result, outputs, fn), *gradients[len(outputs) :]]

    return NodeHandle(node, root, node.add_hook(root, BEFORE, run))


def add_after(node: Any, root: Tensor, fn: Callable) -> NodeHandle:
    """Calls ``fn(grad_inputs, grad_outputs)`` after the node has run; its result, if not None, replaces grad_inputs."""
    has_node = [child is not None for child, _ in node.next_functions()]
    is_function = node.is_function()
    count = len(has_node) if is_function else sum(has_node)

    def run(gradients: list, create_graph: bool) -> list:
        computed, outputs = gradients[:count], _outputs(node, gradients[count:])
        left = iter(computed)
        inputs = tuple(computed) if is_function else tuple(next(left) if has else None for has in has_node)
        with set_grad_enabled(create_graph):
            result = fn(inputs, outputs)
        if result is None:
            return computed
        replaced = replacements(result, inputs, fn)
        return replaced if is_function else [gradient for gradient, has in zip(replaced, has_node) if has]

    return NodeHandle(node, root, node.add_hook(root, AFTER, run))
