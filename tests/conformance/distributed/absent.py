"""Placeholders for names that the tests import and teletensor does not have: only tests that use one cannot run."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any


class AbsentName(Exception):
    """A test used a name that teletensor does not have; the message is the name."""


class Absent:
    """Raises AbsentName on any use except in an annotation. Its attributes are absent, too."""

    def __init__(self, name: str):
        self.__dict__["_name"] = name

    def _raise(self, *args: Any, **kwargs: Any) -> Any:
        raise AbsentName(self._name)

    __call__ = __iter__ = __mro_entries__ = __setattr__ = __enter__ = __int__ = __float__ = __mul__ = __rmul__ = _raise

    def __or__(self, other: Any) -> Absent:
        return self

    __ror__ = __or__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{self._name}.{name}")


class AbsentModule(ModuleType):
    """A module whose names are all absent."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{self.__name__}.{name}")


def _module(name: str) -> ModuleType:
    """Imports a module; if it does not exist, it becomes an AbsentModule."""
    if name in sys.modules:
        return sys.modules[name]
    parent, _, last = name.rpartition(".")
    if parent:
        _module(parent)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        module = AbsentModule(name)
        module.__path__ = []
        sys.modules[name] = module
        if parent and last not in vars(sys.modules[parent]):
            setattr(sys.modules[parent], last, module)
        return module


def provide(source: str, besides: str | None = None) -> list[str]:
    """Makes the top-level imports of `torch` modules in the source succeed; returns the names that are absent.

    `besides`: a package from which everything exists.
    """
    absent = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(f"{besides}."):
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "torch" and isinstance(_module(alias.name), AbsentModule):
                    absent.append(alias.name)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "torch":
            module = _module(node.module)
            for alias in node.names:
                absent += _provide_name(module, node.module, alias.name)
    return absent


def _provide_name(module: ModuleType, path: str, name: str) -> list[str]:
    if not isinstance(module, AbsentModule) and hasattr(module, name):
        return []
    full = f"{path}.{name}"
    try:
        importlib.import_module(full)
    except ModuleNotFoundError:
        setattr(module, name, Absent(full))
        return [full]
    return []
