"""teletensor.fx: programs as graphs that Python code can read and change; see torch.fx and docs/fx.md.

    traced = fx.symbolic_trace(module)      # run the module with proxies, which record a graph
    print(traced.graph, traced.code)
    for node in traced.graph.nodes: ...     # change it
    traced.recompile()                      # the module's forward() is generated from the graph
"""

from __future__ import annotations

from .._lazy import lazy_attributes

# Names by the module that has them. They are imported when they are used: of a package that imports its own modules, a thread that
# imports the package and one that imports such a module wait for each other.
_NAMES = {
    "node": "Node has_side_effect map_arg", "graph": "CodeGen Graph", "graph_module": "GraphModule", "proxy": "Proxy",
    "_symbolic_trace": "PH ProxyableClassMeta Tracer symbolic_trace", "_wrapped": "wrap", "interpreter": "Interpreter Transformer",
    "subgraph_rewriter": "replace_pattern",
}  # fmt: skip
_MODULES = (
    "annotate", "experimental", "graph", "graph_module", "immutable_collections", "interpreter", "node", "operator_schemas", "passes",
    "proxy", "subgraph_rewriter", "traceback",
)  # fmt: skip
__getattr__, __dir__ = lazy_attributes(globals(), _MODULES, _NAMES)
__all__ = [
    "symbolic_trace", "Tracer", "wrap", "Graph", "GraphModule", "Interpreter", "Transformer", "Node", "Proxy",
    "replace_pattern", "has_side_effect", "map_arg",
]  # fmt: skip
