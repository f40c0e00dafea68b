"""Simple compilers for aot_function()."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..fx.graph_module import GraphModule

__all__ = ["nop", "print_compile"]


def nop(fx_g: GraphModule, _inputs: Any) -> Callable:
    """Returns the graph's module itself."""
    return fx_g


def print_compile(fx_g: GraphModule, _inputs: Any) -> Callable:
    """Prints the generated code and returns the graph's module."""
    print(fx_g.code)
    return fx_g
