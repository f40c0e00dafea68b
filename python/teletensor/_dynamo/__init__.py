"""torch._dynamo: the names that libraries use. Graphs are not compiled; see teletensor.compiler."""

from __future__ import annotations

from typing import Any

from ..compiler import allow_in_graph, assume_constant_result, is_compiling, list_backends, nonstrict_trace, reset, set_stance
from . import config
from ._config import Patch
from .decorators import (
    disable, disallow_in_graph, error_on_graph_break, forbid_in_graph, graph_break, mark_dynamic, mark_static, mark_static_address,
    maybe_mark_dynamic, optimize, run, skip_frame, substitute_in_graph,
)  # fmt: skip
from .eval_frame import OptimizedModule, explain, export

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable", "disallow_in_graph", "error_on_graph_break",
    "explain", "export", "forbid_in_graph", "graph_break", "is_compiling", "list_backends", "lookup_backend", "mark_dynamic",
    "mark_static", "mark_static_address", "maybe_mark_dynamic", "nonstrict_trace", "optimize", "patch_dynamo_config",
    "register_backend", "reset", "run", "set_stance", "skip_frame", "substitute_in_graph",
]  # fmt: skip

patch_dynamo_config = Patch


def register_backend(compiler_fn: Any = None, name: str | None = None, tags: Any = ()) -> Any:
    """Raises NotImplementedError: graphs are not compiled."""
    raise NotImplementedError("[register_backend] graphs are not compiled, so a backend would never be called")


def lookup_backend(compiler_fn: Any) -> Any:
    """Raises NotImplementedError: graphs are not compiled."""
    raise NotImplementedError("[lookup_backend] graphs are not compiled, so there are no backends to call")
