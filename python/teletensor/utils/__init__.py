"""torch.utils."""

from __future__ import annotations

from typing import Any

from . import checkpoint, data, dlpack, hooks

__all__ = ["checkpoint", "data", "dlpack", "hooks", "set_module", "swap_tensors"]  # noqa: F822 - swap_tensors: __getattr__

_LAZY = {"_pytree": None, "serialization": None, "swap_tensors": "_swap"}  # attribute: module that defines it, or None for a module


def set_module(obj: Any, mod: str) -> None:
    """Sets the module of a function or class."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'teletensor.utils' has no attribute {name!r}")
    import importlib

    if _LAZY[name] is None:
        return importlib.import_module(f"{__name__}.{name}")
    value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
    return value
