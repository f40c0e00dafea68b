"""Generated source: compiled so that tracebacks show its lines, and imported again from text."""

from __future__ import annotations

import importlib.machinery
import linecache
from typing import Any, Callable

from ._names import is_from_torch
from ._namespace import _custom_builtins


class _EvalCacheLoader:
    """Keeps generated sources for linecache, under names <eval_with_key>.N."""

    def __init__(self) -> None:
        self.eval_cache: dict[str, str] = {}
        self.next_id = 0

    def cache(self, src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None) -> str:
        """Stores a source; returns the file name to compile it with.

        Args:
            co_fields: the name, file and first line of the traced function, which the file name then mentions.
        """
        key = f"<eval_with_key>.{self.next_id}"
        self.next_id += 1
        if co_fields and "co_filename" in co_fields:
            if "co_firstlineno" in co_fields and "co_name" in co_fields:
                key += f" from {co_fields['co_filename']}:{co_fields['co_firstlineno']} in {co_fields['co_name']}"
            else:
                key = co_fields["co_filename"]
        self.eval_cache[key] = src
        spec = importlib.machinery.ModuleSpec(key, self)
        linecache.lazycache(key, {**globals, "__file__": key, "__name__": key, "__loader__": self, "__spec__": spec})
        return key

    def get_source(self, module_name: str) -> str | None:
        """The source of a name, for linecache."""
        return self.eval_cache.get(module_name)


_loader = _EvalCacheLoader()


def _exec_with_source(src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None) -> None:
    """Runs a source in a namespace."""
    key = _loader.cache(src, globals, co_fields)
    exec(compile(src, key, "exec", dont_inherit=True), globals)


def _method_from_src(
    method_name: str, src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None
) -> Callable:
    """The function that a source defines."""
    namespace = globals.copy()
    _exec_with_source(src, namespace, co_fields)
    return namespace.pop(method_name)


def _forward_from_src(src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None) -> Callable:
    """The function `forward` that a source defines."""
    return _method_from_src("forward", src, globals, co_fields)


def _format_import_statement(name: str, obj: Any) -> str:
    """The statement that binds a global of generated code.

    Raises:
        RuntimeError: the object cannot be imported by its module and name.
    """
    if name in _custom_builtins:
        return _custom_builtins[name].import_str
    if is_from_torch(obj):
        return "import teletensor as torch"
    module, qualname = getattr(obj, "__module__", None), getattr(obj, "__qualname__", getattr(obj, "__name__", None))
    if not module or not qualname or "<" in qualname:
        raise RuntimeError(f"[fx] expected a function or class that can be imported by name, got {obj!r}")
    first, _, rest = qualname.partition(".")
    if not rest:
        return f"from {module} import {first} as {name}"
    return f"from {module} import {first} as _{name}_owner; {name} = _{name}_owner.{rest}"


def _format_import_block(globals: dict[str, Any]) -> str:
    """The statements that bind all globals of generated code."""
    lines = {
        f"{name} = {obj!r}" if isinstance(obj, str) else _format_import_statement(name, obj) for name, obj in globals.items()
    }
    return "\n".join(sorted(lines))
