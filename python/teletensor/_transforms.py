"""The function transforms of torch.func that are running in this thread."""

from __future__ import annotations

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


running = _Running()


def batched(tensor: Any) -> Any:
    """A tensor of which each entry of all running vmaps has its own, for gradients with respect to it."""
    return running.levels[-1].batched(tensor) if running.levels else tensor
