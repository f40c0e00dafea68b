"""torch.package: importers, patterns of names and listings of files. Packages themselves contain pickles, and unpickling runs code,
so that they are neither written nor read.
"""

from __future__ import annotations

from typing import Any

from .._not_implemented import not_implemented
from ._importers import Importer, ObjMismatchError, ObjNotFoundError, OrderedImporter, sys_importer
from ._listing import Directory
from ._patterns import GlobGroup

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


not_implemented(
    globals(), "a package contains pickles, and unpickling runs code; use torch.save for state dicts",
    classes="PackageExporter PackageImporter",
)  # fmt: skip
