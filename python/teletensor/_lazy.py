"""Attributes of a module that are imported at their first use, so that importing the package stays fast."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any, Callable


def lazy_attributes(
    namespace: dict[str, Any],
    modules: Iterable[str] | None = (),
    names: Mapping[str, str] | None = None,
    but: tuple[str, ...] = (),
    convert: Callable[[str, str, Any], Any] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns the functions __getattr__ and __dir__ of a module.

    Args:
        namespace: the module's globals(), to which an attribute is added at its first use.
        modules: submodules, which are attributes too; None: all.
        names: by submodule, relative to the module's package ("nn.functional"): its attributes, separated by spaces.
            "new=old" gives an attribute another name.
        but: submodules that are not attributes before they are imported.
        convert: returns the value to export, from the package's name, the attribute's name and the value found.
    """
    package = namespace["__name__"]
    sources = {name: (f"{package}.{name}", "") for name in modules or ()}
    for module, found in (names or {}).items():
        for name in found.split():
            alias, _, original = name.partition("=")
            sources[alias] = (f"{package}.{module}", original or alias)

    def get(name: str) -> Any:
        if name not in sources and (modules is not None or name in but or importlib.util.find_spec(f"{package}.{name}") is None):
            raise AttributeError(f"module {package!r} has no attribute {name!r}: not implemented yet (docs/names.md)")
        path, attribute = sources.get(name, (f"{package}.{name}", ""))
        module = importlib.import_module(path)
        value = getattr(module, attribute) if attribute else module
        if convert and attribute:
            value = convert(package, name, value)
        namespace[name] = value
        return value

    def names_of() -> list[str]:
        import pkgutil

        found = set() if modules is not None else {m.name for m in pkgutil.iter_modules(namespace["__path__"])} - set(but)
        return sorted({*namespace, *sources, *found})

    return get, names_of


def lazy_module(namespace: dict[str, Any], module: str, names: Mapping[str, str] | None = None) -> tuple[Callable, Callable]:
    """Returns the functions __getattr__ and __dir__ of a package whose names one of its modules defines.

    The module is imported when a name is used that is no submodule's. The package itself imports nothing, so that a thread
    that imports it never waits for one that imports a submodule.

    Args:
        namespace, names: as of lazy_attributes().
        module: relative to the package.
    """
    package = namespace["__name__"]
    get_attribute, names_of_attributes = lazy_attributes(namespace, None, names)

    def defined() -> dict[str, Any]:
        found = vars(importlib.import_module(f"{package}.{module}"))
        for name, value in found.items():
            if name == "__all__" or not name.startswith("__"):
                namespace.setdefault(name, value)
        return namespace

    def get(name: str) -> Any:
        if name == "__all__" or not name.startswith("__"):
            try:
                return get_attribute(name)
            except AttributeError:
                if name in defined():
                    return namespace[name]
        raise AttributeError(f"module {package!r} has no attribute {name!r}: not implemented yet (docs/names.md)")

    return get, lambda: sorted({*defined(), *names_of_attributes()})


def defined_by(namespace: dict[str, Any], module: str, *names: str) -> Callable[[str], Any]:
    """Returns the function __getattr__ of a module, some of whose names another one sets. `module`: relative to the package."""

    def get(name: str) -> Any:
        if name in names:
            importlib.import_module(f"{namespace['__package__']}.{module}")
            return namespace[name]
        raise AttributeError(f"module {namespace['__name__']!r} has no attribute {name!r}")

    return get


class _OlderPaths:
    """Finds modules of the table of _older_paths.py, which have no file. Asked after the other finders."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if not name.startswith("teletensor."):
            return None
        from . import _older_paths  # few programs use its table

        return _older_paths.spec_of(name)


def find_older_paths() -> None:
    """Makes the modules of the table importable. Called when the package is imported."""
    sys.meta_path.append(_OlderPaths())


class _Package(ModuleType):
    """A package with functions that have the name of a submodule. The import of the submodule does not replace them."""

    _kept: frozenset[str] = frozenset()

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._kept or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


def keep_functions(package: ModuleType, *names: str) -> None:
    """Makes imports of the package's submodules of these names leave its attributes as they are."""
    kept = frozenset(names) | getattr(package, "_kept", frozenset())
    kind = type(package)  # may have properties
    bases = (kind,) if issubclass(kind, _Package) else (_Package,) if kind is ModuleType else (_Package, kind)
    package.__class__ = type("_Package", bases, {"_kept": kept, "__doc__": _Package.__doc__})
