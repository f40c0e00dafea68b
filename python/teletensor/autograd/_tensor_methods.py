"""Methods of Tensor for backward passes and their hooks."""

from __future__ import annotations

from collections.abc import Callable

from .._C import Tensor
from .._grad_mode import no_grad
from . import gradients, graph
from ._passes import current_pass


def backward(self: Tensor, gradient=None, retain_graph=None, create_graph=False, inputs=None) -> None:
    """Accumulates the gradient of this tensor into the leaves of its graph.

    Args:
        gradient: the gradient with respect to this tensor, of its shape; optional if the tensor has one element.
        retain_graph: whether the graph is kept for another backward pass; by default the value of ``create_graph``.
        create_graph: whether the computation of the gradients is recorded, for second derivatives.
        inputs: the tensors into which gradients are accumulated; by default all leaves.
    """
    gradients.backward(self, gradient, retain_graph, create_graph, inputs=inputs)


def register_hook(self: Tensor, hook: Callable):
    """Calls ``hook(grad)`` when the gradient is computed; a result other than None replaces the gradient."""
    return graph.register_hook(self, hook)


def register_post_accumulate_grad_hook(self: Tensor, hook: Callable[[Tensor], None]):
    """Calls ``hook(self)`` at the end of each backward pass that accumulates into ``.grad`` of this leaf.

    PyTorch calls it as soon as this gradient has been accumulated, before the other leaves' gradients.
    """
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if not self.is_leaf:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    noted: list = []  # the pass in which the hook was called

    def on_gradient(_gradient: Tensor) -> None:
        calls = current_pass()
        if calls is None or any(known is calls for known in noted) or not calls.accumulates_into(self):
            return
        noted[:] = [calls]

        def finish() -> None:
            noted.clear()
            with no_grad():
                returned = hook(self)
            if returned is not None and not isinstance(returned, Tensor):
                raise TypeError(f"expected Variable, but hook returned '{type(returned).__name__}'")

        calls.append(finish)

    return self.register_hook(on_gradient)


Tensor.backward, Tensor.register_hook = backward, register_hook
Tensor.register_post_accumulate_grad_hook = register_post_accumulate_grad_hook
Tensor._grad = Tensor.grad
