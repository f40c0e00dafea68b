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

    Names in annotations and the class's source are still looked for in the module that defines it.
    """
    for value in values:
        if isinstance(value, type):
            defining = _namespace(sys.modules[value.__module__])
            _files.setdefault(id(value), (value, defining.get("__file__")))
            annotations = value.__dict__.get("__annotations__", {})
            for name, text in annotations.items():
                if isinstance(text, str):
                    annotations[name] = _annotation(text, defining)
        value.__module__ = module


def _annotation(text: str, namespace: dict[str, Any]) -> Any:
    """The value of an annotation; a reference to a name of the module if it is not defined yet."""
    try:
        found = eval(text, namespace)
    except (NameError, AttributeError, TypeError):
        found = text
    return ForwardRef(text, is_class=True, module=namespace["__name__"]) if isinstance(found, str) else found


# By id: a class that names another module than the one that defines it, and the file of the latter.
_files: dict[int, tuple[type, str | None]] = {}


def _find_sources(inspect: ModuleType) -> None:
    """Makes `inspect` find the sources of the classes in _files; PyTorch's torch.package replaces the function, too."""
    import functools

    getfile = inspect.getfile

    @functools.wraps(getfile)
    def getfile_of_class(object: Any) -> str:
        kind, file = _files.get(id(object), (None, None))
        return file if kind is object and file else getfile(object)

    inspect.getfile = getfile_of_class  # type: ignore[attr-defined]


class _InspectFinder:
    """Calls _find_sources() at the end of the import of `inspect`, which takes too long to import for programs that do not use it."""

    _called = False

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> Any:
        if name != "inspect" or self._called:
            return None
        self._called = True  # it stays in the list, through which other threads may be iterating
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None and not isinstance(spec.loader, type):
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                _find_sources(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def find_sources_of_classes() -> None:
    """Makes `inspect` find the sources of classes that name another module. Called when the package is imported."""
    if "inspect" in sys.modules:
        _find_sources(sys.modules["inspect"])
    else:
        sys.meta_path.insert(0, _InspectFinder())  # type: ignore[arg-type]


class _OlderPaths:
    """Finds modules of the table of _older_paths.py, which have no file. Asked after the other finders."""

    def __init__(self, spec_of: Callable[[str], Any]) -> None:
        self._spec_of = spec_of

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return self._spec_of(name)


def find_older_paths() -> None:
    """Makes the modules of the table importable. Called when the package is imported."""
    from . import _older_paths  # not by the finder, which is called under the lock of all imports

    sys.meta_path.append(_OlderPaths(_older_paths.spec_of))  # type: ignore[arg-type]


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
