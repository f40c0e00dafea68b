"""PassBase: a pass over a module's graph."""

from __future__ import annotations

import abc
from typing import Any, NamedTuple

from ...graph_module import GraphModule

__all__ = ["PassResult", "PassBase"]


class PassResult(NamedTuple):
    """The result of a pass: the module, and whether it was changed."""

    graph_module: Any
    modified: bool


class PassBase(abc.ABC):
    """A pass: subclasses define call(), and may check the module before and after it."""

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        """Checks the module, runs the pass and checks the module again."""
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """Runs the pass."""

    def requires(self, graph_module: GraphModule) -> None:
        """Raises if the pass cannot run on the module."""
        return

    def ensures(self, graph_module: GraphModule) -> None:
        """Raises if the pass left the module in an invalid state."""
        return
