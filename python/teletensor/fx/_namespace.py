"""Unique names of a graph's values, and the names that generated code may not use for them."""

from __future__ import annotations

import builtins
import keyword
import math
import re
from typing import Any, NamedTuple

import teletensor

from .._C import device


class _CustomBuiltin(NamedTuple):
    """A global of every generated function: the statement that imports it, and the object."""

    import_str: str
    obj: Any


_custom_builtins: dict[str, _CustomBuiltin] = {}
_illegal_names: dict[str, Any] = {name: object() for name in keyword.kwlist} | dict(vars(builtins))


def _register_custom_builtin(name: str, import_str: str, obj: Any) -> None:
    """Adds a global that all generated functions have."""
    _custom_builtins[name] = _CustomBuiltin(import_str, obj)
    _illegal_names[name] = obj


def _register_defaults() -> None:
    from ..utils import _pytree as pytree
    from . import _pytree as fx_pytree

    _register_custom_builtin("inf", "from math import inf", math.inf)
    _register_custom_builtin("nan", "from math import nan", math.nan)
    _register_custom_builtin("NoneType", "NoneType = type(None)", type(None))
    _register_custom_builtin("torch", "import teletensor as torch", teletensor)
    _register_custom_builtin("device", "from teletensor import device", device)
    _register_custom_builtin("fx_pytree", "import teletensor.fx._pytree as fx_pytree", fx_pytree)
    _register_custom_builtin("pytree", "import teletensor.utils._pytree as pytree", pytree)


_register_defaults()

_ILLEGAL_CHARACTERS = re.compile("[^0-9a-zA-Z_]+")
_NAME = re.compile(r"([a-zA-Z_][0-9a-zA-Z_]*?)(?:_(\d+))?\Z", re.ASCII)
_LOWER_UPPER = re.compile(r"(?<=[a-z])([A-Z])")


def _snake_case(text: str) -> str:
    """pascalCase becomes pascal_case, ALL_CAPS all_caps."""
    return _LOWER_UPPER.sub(r"_\1", text).lower()


def _is_magic(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


class _Namespace:
    """Assigns each object a unique name that is not a keyword or builtin."""

    def __init__(self) -> None:
        self._obj_to_name: dict[Any, str] = {}
        self._used_names: set[str] = set()
        self._base_count: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any) -> str:
        """A unique name like the candidate, numbered if necessary.

        Args:
            obj: the object that gets the name; an object that has a name keeps it. None: no object.
        """
        if obj is not None and obj in self._obj_to_name:
            return self._obj_to_name[obj]
        match = _NAME.match(candidate)
        if match is None:
            candidate = _ILLEGAL_CHARACTERS.sub("_", candidate) or "_unnamed"
            candidate = f"_{candidate}" if candidate[0].isdigit() else candidate
            match = _NAME.match(candidate)
        base, suffix = match.group(1, 2)
        number = int(suffix) if suffix is not None else 0
        if suffix is None or candidate in self._used_names:
            number = self._base_count.get(base, 0)
            if _illegal_names.get(candidate, obj) is not obj:
                number += 1
                candidate = f"{base}_{number}"
        while candidate in self._used_names:
            number += 1
            candidate = f"{base}_{number}"
        self._used_names.add(candidate)
        self._base_count[base] = number
        if obj is not None:
            self._obj_to_name[obj] = candidate
        return candidate

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Records the name of an object that has none."""
        if self._obj_to_name.setdefault(obj, name) is not name:
            raise AssertionError("obj is already associated")

    def _rename_object(self, obj: Any, name: str) -> None:
        if obj not in self._obj_to_name:
            raise AssertionError(f"Object {obj} is not in _obj_to_name")
        self._obj_to_name[obj] = name
        self._used_names.add(name)
