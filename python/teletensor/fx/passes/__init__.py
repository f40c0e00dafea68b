"""Passes over graphs; each module is imported at its first use."""

import importlib

_MODULES = (
    "dialect", "fake_tensor_prop", "graph_drawer", "graph_manipulation", "infra", "net_min_base", "operator_support",
    "param_fetch", "pass_manager", "reinplace", "shape_prop", "split_module", "split_utils", "splitter_base", "tools_common",
    "utils",
)  # fmt: skip


def __getattr__(name: str):
    """Imports a module of this package."""
    if name in _MODULES:
        return importlib.import_module(f"teletensor.fx.passes.{name}")
    raise AttributeError(f"module 'teletensor.fx.passes' has no attribute {name!r}")
