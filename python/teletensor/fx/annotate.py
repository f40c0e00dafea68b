"""annotate: gives a traced value a type."""

from __future__ import annotations

from typing import Any

from .proxy import Proxy

__all__ = ["annotate"]


def annotate(val: Any, type: Any) -> Any:
    """Sets the type of a proxy's node and returns the proxy; any other value unchanged.

    Raises:
        RuntimeError: the node has a type already.
    """
    if not isinstance(val, Proxy):
        return val
    if val.node.type:
        raise RuntimeError(
            f"Tried to annotate a value that already had a type on it! Existing type is {val.node.type} and new type is {type}."
        )
    val.node.type = type
    return val
