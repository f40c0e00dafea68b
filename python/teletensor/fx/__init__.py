"""teletensor.fx: programs as graphs that Python code can read and change; see torch.fx and docs/fx.md.

    traced = fx.symbolic_trace(module)      # run the module with proxies, which record a graph
    print(traced.graph, traced.code)
    for node in traced.graph.nodes: ...     # change it
    traced.recompile()                      # the module's forward() is generated from the graph
"""

from . import immutable_collections
from .node import Node, has_side_effect, map_arg
from .graph import CodeGen, Graph
from .graph_module import GraphModule
from .proxy import Proxy
from ._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace
from ._wrapped import wrap
from .interpreter import Interpreter, Transformer
from .subgraph_rewriter import replace_pattern
from . import traceback

__all__ = [
    "symbolic_trace", "Tracer", "wrap", "Graph", "GraphModule", "Interpreter", "Transformer", "Node", "Proxy",
    "replace_pattern", "has_side_effect", "map_arg",
]  # fmt: skip
_LAZY = ("annotate", "experimental", "operator_schemas", "passes")


def __getattr__(name: str):
    """Imports a module of this package at its first use."""
    if name in _LAZY:
        import importlib

        return importlib.import_module(f"teletensor.fx.{name}")
    raise AttributeError(f"module 'teletensor.fx' has no attribute {name!r}")
