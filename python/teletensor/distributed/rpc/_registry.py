"""The functions that this process executes for other workers, by name.

These are the operators of teletensor, its modules and optimizers, and what register() was called with; in a program that
imports `torch` (teletensor.as_torch) also the functions and classes of the program's own modules. A worker looks a name up in
its own tables: a message cannot name anything else, and nothing is imported because of a message.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
import types
from collections.abc import Callable, Iterator

from ... import _C
from ...serialization import _program

_by_name: dict[str, Callable] = {}
_names: dict[int, str] = {}  # by id() of a function in _by_name
_classes: set[type] = set()  # whose public methods may be called on the values of RRefs
_PLAIN = (list, dict, set)


def register(target):
    """Allows other workers to call a function, a class and its public methods, or a module's public functions and classes.

    May be used as a decorator. Workers find each other's functions by module and qualified name, so each of them must
    register them. The functions run with the arguments that other workers choose: register only functions that are safe
    then.

    Raises:
        TypeError: the target is of another kind, or is a local function or a lambda, which has no name.
    """
    if isinstance(target, types.ModuleType):
        for name, value in list(vars(target).items()):
            is_own = inspect.isfunction(value) or inspect.isclass(value)
            if is_own and not name.startswith("_") and value.__module__ == target.__name__:
                register(value)
        return target
    if not callable(target) or not hasattr(target, "__qualname__"):
        raise TypeError(f"[rpc.register] expected a function, a class or a module, got {type(target).__name__}")
    if "<" in target.__qualname__:
        raise TypeError(f"[rpc.register] expected a function of a module, got {target.__qualname__}")
    _add(f"{target.__module__}:{target.__qualname__}", target)
    if inspect.isclass(target):
        _classes.add(target)
        for name, method in inspect.getmembers(target, inspect.isfunction):
            if not name.startswith("_"):
                _add(f"{target.__module__}:{target.__qualname__}.{name}", method)
    return target


def _add(name: str, function: Callable) -> None:
    _by_name[name] = function
    _names.setdefault(id(function), name)


def name_of(function: Callable) -> str:
    """Returns the name under which other workers look the function up.

    Raises:
        TypeError: it is not callable.
        ValueError: it is not registered.
    """
    if not callable(function):
        raise TypeError("function should be callable.")
    _add_teletensor()
    found = _names.get(id(function))
    if found is None and inspect.ismethod(function) and inspect.isclass(function.__self__):  # a class method
        name = f"{function.__self__.__module__}:{function.__self__.__qualname__}.{function.__name__}"
        found = name if name in _by_name else None
    if found is None and runs_as_torch():
        found = _name_in_program(function)
    if found is None:
        name = getattr(function, "__qualname__", type(function).__qualname__)
        raise ValueError(
            f"[rpc] expected a registered function or an operator, got {name}: decorate it with rpc.register on all workers"
        )
    return found


def function_of(name: str) -> Callable:
    """The inverse of name_of(). Raises PermissionError if there is no such function here."""
    _add_teletensor()
    found = _by_name.get(name)
    if found is None and runs_as_torch():
        found = _found_in_program(name)
    if found is None:
        raise PermissionError(
            f"this worker has no registered function {name!r:.200}: decorate it with rpc.register on all workers"
        )
    return found


def runs_as_torch() -> bool:
    """Whether this process runs a program that was written for PyTorch, which registers nothing."""
    return hasattr(sys.modules.get("torch"), "_is_teletensor")


def _main_or(module: str) -> str:
    """The module's name; the main module of a process that was spawned has its parent's name."""
    return "__main__" if module == "__mp_main__" else module


def _name_in_program(function: Callable) -> str | None:
    """The name of a function or class of the program's modules; None for others."""
    module, path = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    name = f"{_main_or(module or '')}:{path}"
    return name if _found_in_program(name) == function else None


def _found_in_program(name: str) -> Callable | None:
    module, _, path = name.partition(":")
    owner = sys.modules.get(module)
    if owner is None or not _program._is_of_program(owner) or "<" in path:
        return None
    value: object = owner
    for part in path.split("."):
        if part.startswith("__") or not isinstance(value, (types.ModuleType, type)) or part not in vars(value):
            return None
        value = getattr(value, part)
    is_own = _main_or(getattr(value, "__module__", None) or "") == module
    return value if is_own and (inspect.isclass(value) or inspect.isroutine(value)) else None


def method_of(value: object, name: str) -> Callable:
    """Returns a public method of an RRef's value, whose class must be registered.

    Raises:
        PermissionError: the class is not registered.
        AttributeError: it has no such public method.
    """
    kind = type(value)
    allowed = kind in _PLAIN or isinstance(value, _C.Tensor) or any(base in _classes for base in kind.__mro__)
    allowed = allowed or any(base in _library_classes() for base in kind.__mro__)
    if not (allowed or (runs_as_torch() and _name_in_program(kind) is not None)):
        raise PermissionError(
            f"the class {kind.__module__}:{kind.__qualname__} is not registered: decorate it with rpc.register"
        )
    if name.startswith("_") and not (name == "__call__" and callable(value)):
        raise AttributeError(f"expected the name of a public method, got {name!r:.100}")
    method = getattr(value, name)
    if not callable(method):
        raise AttributeError(f"{kind.__qualname__}.{name} is not a method")
    return method


def _library_classes() -> tuple[type, type]:
    from ...nn import Module
    from ...optim import Optimizer

    return Module, Optimizer


# Modules whose functions compute with tensors only: unlike from_file() and load(), they have no other effect.
_OPERATORS = (
    "teletensor._C.", "teletensor._ops.", "teletensor.linalg.", "teletensor.nn.", "teletensor.functional",
)  # fmt: skip


def _is_operator(name: str, value: object) -> bool:
    if name.startswith("_") or inspect.isclass(value) or not callable(value):
        return False
    function = getattr(value, "__wrapped__", value)
    module = getattr(function, "__globals__", {}).get("__name__") or getattr(function, "__module__", None) or ""
    return module.startswith(_OPERATORS)


def _attributes(space: types.ModuleType) -> Iterator[tuple[str, object]]:
    """All public attributes, also those that are imported at their first use."""
    for name in dir(space):
        if not name.startswith("_"):
            with contextlib.suppress(AttributeError, ImportError):
                yield name, getattr(space, name)


def _add_teletensor() -> None:
    """Adds the operators, and the classes of modules and optimizers, once."""
    if "torch:add" in _by_name:
        return
    import teletensor as torch
    from teletensor.nn import functional

    for space, prefix in ((torch.linalg, "linalg"), (torch.fft, "fft"), (torch.special, "special")):
        for name in getattr(space, "__all__", vars(space)):
            value = getattr(space, name)
            if not name.startswith("_") and callable(value) and not inspect.isclass(value):
                _add(f"torch.{prefix}:{name}", value)
    for name, value in _attributes(functional):
        if _is_operator(name, value):
            _add(f"torch.nn.functional:{name}", value)
    for name, value in vars(torch.Tensor).items():
        if not name.startswith("_") and inspect.isroutine(value):
            _add(f"torch:Tensor.{name}", value)
    for space, base, prefix in ((torch.nn, torch.nn.Module, "nn"), (torch.optim, torch.optim.Optimizer, "optim")):
        for name, value in _attributes(space):
            if inspect.isclass(value) and issubclass(value, base):
                _add(f"torch.{prefix}:{name}", value)
    for name in ("tensor", "as_tensor"):
        _add(f"torch:{name}", getattr(torch, name))
    for name, value in sorted(_attributes(torch), key=lambda item: item[0] == "add"):  # "add" marks the end
        if _is_operator(name, value):
            _add(f"torch:{name}", value)
