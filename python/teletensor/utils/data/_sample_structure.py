"""The containers of a sample, without its tensors."""

from __future__ import annotations

from collections.abc import Mapping

from .collate import like


class Leaf:
    """The position of a tensor in a sample."""


def restore(structure, tensors, batch: bool):
    """A sample of the structure with these leaves. In a batch, tuples become lists, as in default_collate."""
    leaves = iter(tensors)

    def build(part):
        if isinstance(part, Leaf):
            return next(leaves)
        if isinstance(part, Mapping):
            return like(part, {key: build(part[key]) for key in part})
        values = [build(entry) for entry in part]
        if hasattr(part, "_fields"):
            return type(part)(*values)
        return values if batch else type(part)(values)

    return build(structure)
