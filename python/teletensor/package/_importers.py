"""Importers: where modules are imported from, and the names of objects in them."""

from __future__ import annotations

import importlib
import logging
import pickle
from abc import ABC, abstractmethod
from types import ModuleType
from typing import Any

from .._lazy import set_module

__all__ = ["Importer", "ObjMismatchError", "ObjNotFoundError", "OrderedImporter", "sys_importer"]

_log = logging.getLogger(__name__)


class ObjNotFoundError(Exception):
    """An importer cannot find an object by its name."""


class ObjMismatchError(Exception):
    """An importer finds a different object under a name."""


class Importer(ABC):
    """Imports modules by name, and finds the name under which an object is imported."""

    modules: dict[str, ModuleType]

    @abstractmethod
    def import_module(self, module_name: str) -> ModuleType:
        """The module with this name."""

    def get_name(self, obj: Any, name: str | None = None) -> tuple[str, str]:
        """The names of an object's module and of the object in it.

        Raises:
            ObjNotFoundError: the importer has no object with this name.
            ObjMismatchError: it has another one.
        """
        if name is None:
            name = _reduced(obj) or getattr(obj, "__qualname__", None) or obj.__name__
        module_name = self.whichmodule(obj, name)
        try:
            found: Any = self.import_module(module_name)
            for part in name.split("."):
                found = getattr(found, part)
        except (ImportError, KeyError, AttributeError):
            raise ObjNotFoundError(f"{obj} was not found as {module_name}.{name}") from None
        if found is not obj:
            raise ObjMismatchError(
                f"The object provided is from '{module_name}'. However, when we import '{module_name}', '{name}' is another object: {found}"
            )
        return module_name, name

    def whichmodule(self, obj: Any, name: str) -> str:
        """The name of an object's module; "__main__" if there is none. Importers may override it."""
        if getattr(obj, "__module__", None) is not None:
            return obj.__module__
        for module_name, module in self.modules.copy().items():
            if module_name not in ("__main__", "__mp_main__") and module is not None and getattr(module, name, None) is obj:
                return module_name
        return "__main__"


def _reduced(obj: Any) -> str | None:
    """The name that an object's __reduce__ returns."""
    if isinstance(obj, type) or not hasattr(obj, "__reduce__"):
        return None
    try:
        reduced = obj.__reduce__()
    except Exception:  # noqa: BLE001 - any: the object cannot be pickled, but may have a name
        return None
    return reduced if isinstance(reduced, str) else None


class _SystemImporter(Importer):
    """Python's own import."""

    def import_module(self, module_name: str) -> ModuleType:
        return importlib.import_module(module_name)

    def whichmodule(self, obj: Any, name: str) -> str:
        return getattr(obj, "__module__", None) or pickle.whichmodule(obj, name)

    def __repr__(self) -> str:
        return "sys_importer"


sys_importer = _SystemImporter()


class OrderedImporter(Importer):
    """Importers that are tried one after another."""

    def __init__(self, *args: Importer):
        self._importers = list(args)

    def import_module(self, module_name: str) -> ModuleType:
        last: ModuleNotFoundError = ModuleNotFoundError(module_name)
        for importer in self._importers:
            if not isinstance(importer, Importer):
                raise TypeError(f"{importer} is not an Importer. All importers in OrderedImporter must inherit from Importer.")
            try:
                return importer.import_module(module_name)
            except ModuleNotFoundError as e:
                last = e
        raise last

    def get_name(self, obj: Any, name: str | None = None) -> tuple[str, str]:
        for importer in self._importers:
            try:
                return importer.get_name(obj, name)
            except (ObjNotFoundError, ObjMismatchError) as e:
                _log.warning("Tried to call get_name with obj %s, and name %s on %s and got %s", obj, name, importer, e)
        raise ObjNotFoundError(f"Could not find obj {obj} and name {name} in any of the importers {self._importers}")

    def whichmodule(self, obj: Any, name: str) -> str:
        found = (importer.whichmodule(obj, name) for importer in self._importers)
        return next((module for module in found if module != "__main__"), "__main__")


set_module("teletensor.package.importer", Importer, ObjMismatchError, ObjNotFoundError, OrderedImporter)
