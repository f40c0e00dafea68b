"""Passes whose interface PyTorch calls experimental; each module is imported at its first use."""

import importlib

_MODULES = ("_config", "const_fold", "normalize", "optimization", "proxy_tensor", "rewriter", "symbolic_shapes")


def __getattr__(name: str):
    """Imports a module of this package."""
    if name in _MODULES:
        return importlib.import_module(f"teletensor.fx.experimental.{name}")
    raise AttributeError(f"module 'teletensor.fx.experimental' has no attribute {name!r}")
