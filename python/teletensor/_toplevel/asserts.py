"""Assertions that traced programs keep."""

from __future__ import annotations

from typing import Any

from .. import _C


def _assert_true(condition: Any, message: str) -> None:
    """Raises AssertionError with the message if the condition is false. A tensor must have one element; reading it waits."""
    if not condition:
        raise AssertionError(message)


# Tracing records it as a node of the graph, by __torch_function__.
_assert = _C.overridable(_assert_true, "teletensor", "_assert")
