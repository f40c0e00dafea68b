"""torch._dynamo: graph capture from Python's bytecode, which torch.compile uses. See docs/compile.md."""

from __future__ import annotations

from .._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "_backends": "list_backends lookup_backend register_backend",
    "_export": "export",
    "_patches": "patch_dynamo_config",
    "_stance": "set_stance",
    "decorators": (
        "allow_in_graph assume_constant_result disable disallow_in_graph error_on_graph_break "
        "forbid_in_graph graph_break is_dynamo_disable_recursive mark_dynamic mark_static "
        "mark_static_address mark_unbacked maybe_mark_dynamic nonstrict_trace optimize run "
        "skip_frame substitute_in_graph"
    ),
    "eval_frame": "OptimizedModule explain reset",
    "external_utils": "is_compiling",
}
__getattr__, __dir__ = lazy_attributes(globals(), ("config", "decorators", "eval_frame", "exc", "utils"), _NAMES)

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable", "disallow_in_graph", "error_on_graph_break",
    "exc", "explain", "export", "forbid_in_graph", "graph_break", "is_compiling", "is_dynamo_disable_recursive", "list_backends",
    "lookup_backend", "mark_dynamic", "mark_static", "mark_static_address", "mark_unbacked", "maybe_mark_dynamic", "nonstrict_trace",
    "optimize", "patch_dynamo_config", "register_backend", "reset", "run", "set_stance", "skip_frame", "substitute_in_graph", "utils",
]  # fmt: skip
