"""Placeholders for names that the tests import and teletensor does not have: only tests that use one cannot run."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import sys
from types import FunctionType, ModuleType
from typing import Any


class AbsentName(Exception):
    """A test used a name that teletensor does not have; the message is the name."""


class Absent:
    """Raises AbsentName on any use except in an annotation or a condition, where it is false. Its attributes are absent, too.

    Decorators are accepted while `importing`: the decorated function raises AbsentName.
    """

    importing = False

    def __init__(self, name: str):
        self.__dict__["_name"] = name

    def _raise(self, *args: Any, **kwargs: Any) -> Any:
        raise AbsentName(self._name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not Absent.importing:
            self._raise()
        if len(args) == 1 and isinstance(args[0], FunctionType):
            return functools.wraps(args[0])(lambda *_, **__: self._raise())
        return self

    def __bool__(self) -> bool:
        return False

    __iter__ = __mro_entries__ = __setattr__ = __enter__ = __int__ = __float__ = __mul__ = __rmul__ = _raise

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


def provide(source: str, besides: str | None = None, package: str = "") -> list[str]:
    """Makes the top-level imports of `torch` modules in the source succeed; returns the names that are absent.

    `besides`: a package from which everything exists. `package`: the package of the source, for its relative imports.
    """
    absent = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "torch" and isinstance(_module(alias.name), AbsentModule):
                    absent.append(alias.name)
        elif isinstance(node, ast.ImportFrom):
            path = importlib.util.resolve_name("." * node.level + (node.module or ""), package) if node.level else node.module
            if path.split(".")[0] == "torch" and not f"{path}.".startswith(f"{besides}."):
                module = _module(path)
                for alias in node.names:
                    absent += _provide_name(module, path, alias.name)
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
