"""torch.package: importers, patterns of names and listings of files. Packages themselves contain pickles, and unpickling runs code,
so that they are neither written nor read.
"""

from __future__ import annotations

from typing import Any

from .._lazy import lazy_attributes, set_module
from .._not_implemented import not_implemented

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "_importers": "Importer ObjMismatchError ObjNotFoundError OrderedImporter sys_importer",
    "_listing": "Directory",
    "_patterns": "GlobGroup",
}
__getattr__, __dir__ = lazy_attributes(globals(), (), _NAMES)

__all__ = [  # noqa: F822 - the exporter and the importer are defined below
    "Directory", "EmptyMatchError", "GlobGroup", "Importer", "ObjMismatchError", "ObjNotFoundError", "OrderedImporter",
    "PackageExporter", "PackageImporter", "PackagingError", "is_from_package", "sys_importer",
]  # fmt: skip


class PackagingError(Exception):
    """A package cannot be created."""


class EmptyMatchError(Exception):
    """A pattern with allow_empty=False matches no module."""


def is_from_package(obj: Any) -> bool:
    """Returns False: no code is loaded from a package."""
    return False


set_module("teletensor.package.package_exporter", EmptyMatchError, PackagingError)
for _module, _class in (("package_exporter", "PackageExporter"), ("package_importer", "PackageImporter")):
    _made: dict[str, Any] = {"__name__": f"teletensor.package.{_module}"}
    not_implemented(_made, "a package contains pickles, and unpickling runs code; use torch.save for state dicts", classes=_class)
    globals()[_class] = _made[_class]
