"""Attributes of a module that are imported at their first use, so that importing the package stays fast."""

from __future__ import annotations

import _thread
import contextlib
import importlib
import importlib.util
import sys
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any, Callable, ForwardRef

# By the full name of a module: where its attributes are exported to (a namespace, the name there, the module's name).
_exports: dict[str, list[tuple[dict[str, Any], str, str]]] = {}
_containing: set[str] = set()  # packages that contain these modules
_namespace = ModuleType.__dict__["__dict__"].__get__  # of a module; loads nothing


def lazy_attributes(
    namespace: dict[str, Any],
    modules: Iterable[str] | None = (),
    names: Mapping[str, str] | None = None,
    but: tuple[str, ...] = (),
    convert: Callable[[str, str, Any], Any] | None = None,
    package: str | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns the functions __getattr__ and __dir__ of a module.

    vars(module) imports all `names`. The import of one of their modules adds its names to the namespace, so that they are what
    the module has defined even if a program replaces the module's attributes before it uses the names.

    Args:
        namespace: the module's globals(), to which an attribute is added at its first use.
        modules: submodules, which are attributes too; None: all.
        names: by submodule, relative to the module's package ("nn.functional"): its attributes, separated by spaces.
            "new=old" gives an attribute another name. The import of a submodule does not replace an attribute of its name.
        but: submodules that are not attributes before they are imported.
        convert: returns the value to export, from the package's name, the attribute's name and the value found. The names are
            then read at their first use, also those in vars(module).
        package: of the submodules; None: the module.
    """
    this, package = namespace["__name__"], package or namespace["__name__"]
    sources = {name: (f"{package}.{name}", "") for name in modules or ()}
    exported = {}
    for module, found in (names or {}).items():
        for name in found.split():
            alias, _, original = name.partition("=")
            exported[alias] = (f"{package}.{module}", original or alias)
    sources.update(exported)

    def get(name: str) -> Any:
        if name not in sources and (modules is not None or name in but or importlib.util.find_spec(f"{package}.{name}") is None):
            raise AttributeError(f"module {this!r} has no attribute {name!r}: not implemented yet (docs/names.md)")
        path, attribute = sources.get(name, (f"{package}.{name}", ""))
        module = importlib.import_module(path)
        if not attribute:
            return namespace.setdefault(name, module)
        if name in namespace:  # added by the import
            return namespace[name]
        value = getattr(module, attribute)
        return namespace.setdefault(name, convert(package, name, value) if convert else value)

    def names_of() -> list[str]:
        import pkgutil

        found = set() if modules is not None else {m.name for m in pkgutil.iter_modules(namespace["__path__"])} - set(but)
        return sorted({*namespace, *sources, *found})

    def load() -> None:
        for name in exported:
            if name not in namespace:
                with contextlib.suppress(ImportError):  # of a library that is not installed
                    get(name)

    if exported and convert is None and this in sys.modules:
        _define_package(sys.modules[this], frozenset(exported) if this == package else frozenset(), load)
        for name, (path, attribute) in exported.items():
            _exports.setdefault(path, []).append((namespace, name, attribute))
            while (path := path.rpartition(".")[0]) not in _containing and path != package:
                _containing.add(path)
    return get, names_of


def defined_by(namespace: dict[str, Any], module: str, *names: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns the functions __getattr__ and __dir__ of a module, some of whose names another one of its package defines."""
    return lazy_attributes(namespace, (), {module: " ".join(names)}, package=namespace["__package__"])


def set_module(module: str, *values: Any) -> None:
    """Makes functions and classes name a module as theirs, as in PyTorch's pickles, where another one defines them.

    typing.get_type_hints() still finds the names in the annotations of classes in the module that defines them.
    """
    for value in values:
        annotations = value.__dict__.get("__annotations__", {}) if isinstance(value, type) else {}
        for name, text in annotations.items():
            if isinstance(text, str):
                annotations[name] = ForwardRef(text, is_class=True, module=value.__module__)
        value.__module__ = module


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
    """A package with names that modules of it define.

    The import of a submodule adds the names that it defines, and does not replace a function that has the submodule's name.
    """

    _kept: frozenset[str] = frozenset()
    _load: Callable[[], None] | None = None  # until vars() has called it
    _loader = 0  # the thread that calls it: what it imports may use vars()

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType):  # at the end of the import of the submodule
            _publish(value)
            if name in self._kept:
                return
        super().__setattr__(name, value)

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """The attributes, also those that are imported at their first use. While the package is imported: those it has."""
        namespace, kind = _namespace(self), type(self)
        load = kind._load
        thread = _thread.get_ident()
        if load is not None and kind._loader != thread and not getattr(namespace["__spec__"], "_initializing", False):
            kind._loader = thread
            load()
            kind._load = None
        return namespace


def _publish(module: ModuleType) -> None:
    """Adds the names of a module, at the end of its import, to the packages that export them."""
    own = _namespace(module)
    path = own["__name__"]
    for namespace, name, attribute in _exports.get(path, ()):
        if attribute in own:
            namespace.setdefault(name, own[attribute])
    if path in _containing and not isinstance(module, _Package):
        _define_package(module)


def _define_package(module: ModuleType, kept: frozenset[str] = frozenset(), load: Callable[[], None] | None = None) -> None:
    """Makes a module a _Package that keeps these functions, too."""
    kind = type(module)  # may have properties
    bases = (kind,) if issubclass(kind, _Package) else (_Package,) if kind is ModuleType else (_Package, kind)
    members = {"_kept": kept | getattr(kind, "_kept", frozenset()), "__doc__": _Package.__doc__}
    if load is not None:
        members["_load"] = staticmethod(load)
    module.__class__ = type("_Package", bases, members)


def keep_functions(package: ModuleType, *names: str) -> None:
    """Makes imports of the package's submodules of these names leave its attributes as they are."""
    _define_package(package, frozenset(names))
