"""Patterns of graphs, and tables that users extend."""

from __future__ import annotations

from typing import Any, Union


class MatchAllNode:
    """A pattern that matches every node of a graph."""


ObserverOrFakeQuantize = Any
Pattern = Union[Any, tuple]
NodePattern = Union[Any, tuple]


def get_combined_dict(default_dict: dict, additional_dict: dict) -> dict:
    """A copy of a table with further rows."""
    return {**default_dict, **additional_dict}
