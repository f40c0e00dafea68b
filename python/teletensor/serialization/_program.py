"""The classes and functions of the calling program that a file may name with ``weights_only=False``.

Nothing is imported for a file, except modules of this package. Classes: of the program's own modules (files that belong to
neither the standard library nor an installed package), Modules, Optimizers and schedulers of any imported package, and a few
of the standard library. Their objects are created without calling constructors, unless the class is in `_CONSTRUCTED`.
NumPy's arrays and numbers are created by `_numpy_values`. Functions of torch, torch.nn.functional and the program's modules
may be stored, but a file cannot call them.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import pathlib
import sys
import sysconfig
import types
from collections import defaultdict, deque
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

from . import _numpy_values

_CONSTRUCTED = frozenset((
    datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone, defaultdict, deque, Decimal, Fraction,
    pathlib.PurePath, pathlib.PurePosixPath, pathlib.PureWindowsPath, pathlib.Path, pathlib.PosixPath, range, slice,
    types.SimpleNamespace,
))  # fmt: skip
_CREATED = frozenset((argparse.Namespace, UUID))
_STORED = frozenset((bool, bytes, complex, dict, float, frozenset, int, list, object, set, str, tuple))
_ALLOWED = {f"{kind.__module__}.{kind.__qualname__}": kind for kind in _CONSTRUCTED | _CREATED | _STORED}
_ALLOWED["builtins.xrange"] = range  # as protocols before 3 write it


def _installed_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple({f"{paths[name]}/" for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def _is_of_program(module: types.ModuleType) -> bool:
    """Whether a module is the program's own: `__main__`, or a file of neither the standard library nor a package."""
    if module.__name__ == "__main__":
        return True
    if module.__name__.partition(".")[0] in (*sys.stdlib_module_names, "teletensor", "torch"):
        return False
    file = getattr(module, "__file__", None)
    return file is not None and not file.startswith(_installed_folders()) and "/site-packages/" not in file


def _own_module(path: str) -> types.ModuleType | None:
    name = "teletensor" + path[len("torch") :]
    if name not in sys.modules:
        try:
            if importlib.util.find_spec(name) is None:
                return None
        except ModuleNotFoundError:
            return None
        importlib.import_module(name)
    return sys.modules[name]


def _attribute(module: types.ModuleType | None, name: str) -> Any:
    value: Any = module
    for part in name.split("."):
        value = vars(value).get(part) if isinstance(value, (types.ModuleType, type)) else None
    return value


def _has_state(kind: type) -> bool:
    """Whether a class of an imported package is a Module, an Optimizer or a scheduler."""
    from ..nn import Module
    from ..optim import Optimizer
    from ..optim.lr_scheduler import LRScheduler

    return issubclass(kind, (Module, Optimizer, LRScheduler))


def find(module: str, name: str) -> Any:
    """The class or function that a file names, or None if it is not allowed."""
    allowed = _ALLOWED.get(f"{module}.{name}")
    if allowed is not None:
        return allowed
    if module.partition(".")[0] == "numpy":
        return _numpy_values.find(module, name)
    if module == "torch" or module.startswith("torch."):
        value = _attribute(_own_module(module), name)
        is_class = isinstance(value, type) and (_has_state(value) or module.startswith("torch.distributions."))
        return value if is_class or module in ("torch", "torch.nn.functional") and callable(value) and not isinstance(value, type) else None
    owner = sys.modules.get(module)
    value = _attribute(owner, name)
    if owner is None or getattr(value, "__module__", None) != module:
        return None
    if isinstance(value, type):
        return value if _is_of_program(owner) or _has_state(value) else None
    return value if isinstance(value, types.FunctionType) and _is_of_program(owner) else None


def may_construct(value: object) -> bool:
    """Whether a file may call a result of find()."""
    return isinstance(value, type) and (value in _CONSTRUCTED or _is_enum(value))


def _is_enum(kind: type) -> bool:
    import enum

    return issubclass(kind, enum.Enum)


def may_create(kind: object) -> bool:
    """Whether a file may create an object of a class without calling its constructor."""
    return isinstance(kind, type) and kind not in _STORED and find(_path(kind), kind.__qualname__) is kind


def _path(kind: type) -> str:
    module = kind.__module__
    return "torch" + module[len("teletensor") :] if module.partition(".")[0] == "teletensor" else module
