"""The containers of a sample, without its tensors."""

from __future__ import annotations

from collections.abc import Mapping

from .collate import like


class Leaf:
    """The position of a tensor in a sample."""


def restore(structure, tensors, batch: bool):
    """A sample of the structure with these leaves. In a batch, tuples become lists, as in default_collate."""
    return _restore(structure, iter(tensors), batch)


def _restore(part, leaves, batch: bool):
    # Not a function within restore(), whose reference to itself would keep the leaves until the next garbage collection.
    if isinstance(part, Leaf):
        return next(leaves)
    if isinstance(part, Mapping):
        return like(part, {key: _restore(part[key], leaves, batch) for key in part})
    values = [_restore(entry, leaves, batch) for entry in part]
    if hasattr(part, "_fields"):
        return type(part)(*values)
    return values if batch else type(part)(values)
