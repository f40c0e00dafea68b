"""The calls by which captured graphs of PyTorch contain vmap: a level begins, maps over tensors, and ends."""

from __future__ import annotations

import contextlib
import threading

from .. import _transforms
from ..func._batched import VmapLevel
from ..func.batching import RandomMode
from .vmap import _add_batch_dim, _remove_batch_dim, lazy_load_decompositions

__all__ = ["_add_batch_dim", "_remove_batch_dim", "_vmap_decrement_nesting", "_vmap_increment_nesting", "lazy_load_decompositions"]


class _Begun(threading.local):
    def __init__(self) -> None:
        self.levels: list[contextlib.ExitStack] = []


_begun = _Begun()


def _vmap_increment_nesting(batch_size: int, randomness: str) -> int:
    """Begins a vmap, inside those that are running. Returns its level, for the other functions: 1 for the outermost."""
    with contextlib.ExitStack() as stack:
        level = stack.enter_context(VmapLevel(batch_size, randomness))
        stack.enter_context(RandomMode(level))
        _begun.levels.append(stack.pop_all())
    return level.depth


def _vmap_decrement_nesting() -> int:
    """Ends the vmap that began last. Returns its level.

    Raises:
        RuntimeError: _vmap_increment_nesting() has begun none that is running.
    """
    if not _begun.levels:
        raise RuntimeError("[_vmap_decrement_nesting] expected a vmap that _vmap_increment_nesting() has begun, got none")
    level = len(_transforms.running.levels)
    _begun.levels.pop().close()
    return level
