"""torch._dynamo: graph capture from Python's bytecode, which torch.compile uses. See docs/compile.md."""

from __future__ import annotations

import functools

from .._config_module import Patch
from ..compiler import _engine_backend  # noqa: F401 - registers the default backend
from . import config, exc, utils
from ._backends import list_backends, lookup_backend, register_backend
from ._export import export
from ._stance import is_compiling, set_stance
from .decorators import (
    allow_in_graph, assume_constant_result, disable, disallow_in_graph, error_on_graph_break, forbid_in_graph, graph_break,
    is_dynamo_disable_recursive, mark_dynamic, mark_static, mark_static_address, mark_unbacked, maybe_mark_dynamic, nonstrict_trace,
    optimize, run, skip_frame, substitute_in_graph,
)  # fmt: skip
from .eval_frame import OptimizedModule, explain, reset

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable", "disallow_in_graph", "error_on_graph_break",
    "exc", "explain", "export", "forbid_in_graph", "graph_break", "is_compiling", "is_dynamo_disable_recursive", "list_backends",
    "lookup_backend", "mark_dynamic", "mark_static", "mark_static_address", "mark_unbacked", "maybe_mark_dynamic", "nonstrict_trace",
    "optimize", "patch_dynamo_config", "register_backend", "reset", "run", "set_stance", "skip_frame", "substitute_in_graph", "utils",
]  # fmt: skip

patch_dynamo_config = functools.partial(Patch, _config=config)
