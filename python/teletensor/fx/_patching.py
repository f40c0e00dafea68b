"""Temporary replacement of functions and methods while a tracer runs."""

from __future__ import annotations

import builtins
import contextlib
import functools
from collections.abc import Iterator
from typing import Any, Callable

from ._wrapped import _wrapped_fns_to_patch, wrap  # noqa: F401
from .node import map_aggregate
from .proxy import Proxy

_MISSING = object()
_MARK = "__fx_already_patched"
_wrapped_methods_to_patch: list[tuple[type, str]] = []


class _Patcher:
    """Replaces entries of modules' globals and attributes of classes, and restores them in the reverse order."""

    def __init__(self) -> None:
        self._undo: list[tuple[Any, str, Any]] = []  # the dict or class, the name, the original or _MISSING
        self._redo: list[tuple[Any, str, Any]] = []
        self._visited: set[int] = set()

    def patch(self, namespace: dict[str, Any], name: str, new: Callable) -> None:
        """Replaces a global; a builtin is shadowed."""
        if getattr(namespace.get(name), _MARK, False):
            return
        setattr(new, _MARK, True)
        self._set(namespace, name, namespace.get(name, _MISSING), new)

    def patch_method(self, cls: type, name: str, new: Callable, deduplicate: bool = True) -> None:
        """Replaces a class's attribute. With deduplicate, an attribute that is already replaced is left unchanged."""
        original = getattr(cls, name)
        if getattr(original, _MARK, False):
            return
        setattr(new, _MARK, deduplicate)
        self._set(cls, name, original, new)

    def _set(self, place: Any, name: str, original: Any, new: Any) -> None:
        self._undo.append((place, name, original))
        self._redo.append((place, name, new))
        _assign(place, name, new)

    def visit_once(self, thing: Any) -> bool:
        """Whether this is the first call for the object."""
        if id(thing) in self._visited:
            return False
        self._visited.add(id(thing))
        return True

    def revert_all_patches(self) -> None:
        """Restores the originals; reapply_all_patches() may follow."""
        for place, name, original in reversed(self._undo):
            _assign(place, name, original)

    def reapply_all_patches(self) -> None:
        """Sets the replacements again."""
        for place, name, new in self._redo:
            _assign(place, name, new)


def _assign(place: Any, name: str, value: Any) -> None:
    if not isinstance(place, dict):
        setattr(place, name, value)
    elif value is _MISSING:
        place.pop(name, None)
    else:
        place[name] = value


_current: list[_Patcher] = []


@contextlib.contextmanager
def _new_patcher() -> Iterator[_Patcher]:
    """A patcher whose replacements end with the block."""
    patcher = _Patcher()
    _current.append(patcher)
    try:
        yield patcher
    finally:
        _current.pop()
        patcher.revert_all_patches()


@contextlib.contextmanager
def _maybe_revert_all_patches() -> Iterator[None]:
    """Context manager: restores the originals inside its block, if a tracer runs."""
    patcher = _current[-1] if _current else None
    if patcher is not None:
        patcher.revert_all_patches()
    try:
        yield
    finally:
        if patcher is not None:
            patcher.reapply_all_patches()


def _find_proxy(*values: Any) -> Proxy | None:
    """A proxy in nested containers, or None."""
    found: list[Proxy] = []

    def look(value: Any) -> Any:
        if isinstance(value, Proxy):
            found.append(value)
        return value

    map_aggregate(values, look)
    return found[-1] if found else None


def _create_wrapped_func(function: Callable) -> Callable:
    """A function whose calls with proxies become one node."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        result = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        result.node.meta["is_wrapped"] = True
        return result

    return wrapped


def _create_wrapped_method(cls: type, name: str) -> Callable:
    """A method whose calls with proxies become one node."""
    original = getattr(cls, name)

    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return original(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)

    return wrapped


def _patch_wrapped_functions(patcher: _Patcher) -> None:
    """Replaces everything that wrap() registered."""
    for (_, name), namespace in list(_wrapped_fns_to_patch.items()):
        function = namespace[name] if name in namespace else getattr(builtins, name)
        patcher.patch(namespace, name, _create_wrapped_func(function))
    for cls, name in _wrapped_methods_to_patch:
        patcher.patch_method(cls, name, _create_wrapped_method(cls, name))


def _autowrap_check(patcher: _Patcher, namespace: dict[str, Any], function_ids: set[int]) -> None:
    """Replaces the functions of a namespace that a tracer wraps by identity."""
    if not patcher.visit_once(namespace):
        return
    for name, value in list(namespace.items()):
        if not name.startswith("_") and id(value) in function_ids and callable(value):
            patcher.patch(namespace, name, _create_wrapped_func(value))
