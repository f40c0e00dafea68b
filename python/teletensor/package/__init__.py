"""torch.package: archives of code and pickles. Importable; not available, since unpickling runs code."""

from __future__ import annotations

import importlib
from typing import Any

from .._not_implemented import not_implemented


class PackagingError(Exception):
    """A package cannot be created."""


class EmptyMatchError(Exception):
    """A pattern with allow_empty=False matches no module."""


class ObjNotFoundError(Exception):
    """An importer cannot find an object by its name."""


class ObjMismatchError(Exception):
    """An importer finds a different object under a name."""


def is_from_package(obj: Any) -> bool:
    """Returns False: no code is loaded from a package."""
    return False


class _SystemImporter:
    """Python's own import, with the interface of torch.package's importers."""

    def import_module(self, module_name: str) -> Any:
        """importlib.import_module."""
        return importlib.import_module(module_name)

    def __repr__(self) -> str:
        return "sys_importer"


sys_importer = _SystemImporter()

not_implemented(
    globals(), "a package contains pickles, and unpickling runs code; use torch.save for state dicts",
    classes="Directory GlobGroup Importer OrderedImporter PackageExporter PackageImporter",
)  # fmt: skip
