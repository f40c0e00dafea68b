"""Whether a backward pass belongs to a module whose gradients are averaged when a pass has been issued."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import _C
from ..._C import Tensor
from ..._sparse.tensor import SparseTensor


def _version(grad: Tensor | None) -> tuple | None:
    if isinstance(grad, SparseTensor):  # each pass adds a new object
        return grad._elements._handle, grad._version
    return None if grad is None else (grad._handle, grad._version)


def versions(parameters: Sequence[Tensor]) -> list[tuple | None]:
    """Values that change whenever a pass adds to the parameters' gradients."""
    return [_version(p.grad) for p in parameters]


def changed_since(parameters: Sequence[Tensor], before: list[tuple | None]) -> list[bool]:
    """Whether each parameter has a gradient to which a pass has added. `before`: the earlier versions()."""
    return [p.grad is not None and _version(p.grad) != v for p, v in zip(parameters, before, strict=True)]


class PassMarks:
    """A pass belongs to a module if it changes a gradient of its parameters or reaches an output of a forward pass that expects it.

    Outputs are found in tuples, lists and dicts; those that are leaves, sparse or nested are not marked.

    Attributes:
        is_pending: whether a forward pass expects a backward pass that averages gradients.
    """

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self.is_pending = False
        self._parameters = parameters
        self._reaches_leaves = True  # whether the pass accumulates into all leaves
        self._is_reached = False
        self._before: list[tuple | None] = []  # the versions of the gradients before the pass

    def prepare(self) -> None:
        """Begins a forward pass that expects a backward pass."""
        self.is_pending = True
        self.begin(True)

    def begin(self, all_leaves: bool) -> None:
        """Begins a backward pass of any module. `all_leaves`: whether it accumulates into all leaves."""
        self._is_reached, self._reaches_leaves = False, all_leaves
        self._before = versions(self._parameters)

    def mark(self, output: Any) -> None:
        """Records from now on that a pass reaches the output, which stays unchanged."""
        from ...distributed.fsdp._nested import tensors_in

        for tensor in tensors_in(output):
            if tensor.requires_grad and not tensor.is_leaf and not _C._is_wrapper(tensor):
                tensor.register_hook(self._reach)

    def _reach(self, _gradient: Tensor) -> None:
        self._is_reached = True

    def changed(self) -> list[bool]:
        """Whether the pass changed each parameter's gradient."""
        return changed_since(self._parameters, self._before)

    def is_of_module(self, changed: list[bool]) -> bool:
        """Whether the pass that ends is of this module. `changed`: the result of changed()."""
        return any(changed) or (self._is_reached and self._reaches_leaves)
