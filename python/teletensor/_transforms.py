"""The function transforms of torch.func that are running in this thread."""

from __future__ import annotations

import itertools
import threading
from typing import Any, Protocol


class Level(Protocol):
    """One vmap in progress (func/_batched.py)."""

    def batched(self, tensor: Any) -> Any:
        """The tensor with a value for each entry of this vmap and of those around it, as the function sees it."""


class _Running(threading.local):
    def __init__(self) -> None:
        self.levels: list[Level] = []  # vmaps, the outermost first
        self.derivatives = 0  # the number of nested derivatives
        self.is_computing = False  # whether operators are called by transforms, not by a function that they transform
        self.forward_enabled = True  # whether operators compute the tangents of dual tensors


running = _Running()

# Numbers transforms in the order in which they begin: of nested ones the innermost has the largest number.
next_number = itertools.count(1).__next__


def batched(tensor: Any) -> Any:
    """Expands the tensor so that each entry of every running vmap has a copy, and a gradient, of its own."""
    return running.levels[-1].batched(tensor) if running.levels else tensor


def leaf(tensor: Any) -> Any:
    """A copy that requires gradients: a leaf, or of a tensor that requires gradients a view. It keeps its derivatives in
    forward mode, unlike detach()."""
    if hasattr(tensor, "as_leaf"):
        return tensor.as_leaf()
    return tensor.view_as(tensor) if tensor.requires_grad else tensor.detach().requires_grad_()


def untaped(tensor: Any) -> Any:
    """The tensor without a history of backward mode. It keeps its derivatives in forward mode, unlike detach()."""
    return tensor.as_untaped() if hasattr(tensor, "as_untaped") else tensor.detach()
