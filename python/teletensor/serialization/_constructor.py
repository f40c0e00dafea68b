"""Entries of the tables of _globals.py: functions that files may call, and what users have added."""

from __future__ import annotations

from typing import Any, Callable

# What users added with add_safe_globals(), by full name: the argument, and the class or function.
_registered: dict[str, Any] = {}


# Classes of this package that files may create, by full name: quantized weights and their configurations.
_of_package: dict[str, type] = {}
_registering: dict[str, Callable[[], object]] = {}


def allow_classes(classes: list[type]) -> None:
    """Lets files create objects of classes of this package; add_safe_globals() is for the program's."""
    _of_package.update({f"{torch_name(kind.__module__)}.{kind.__qualname__}": kind for kind in classes})


def allow_later(prefix: str, register: Callable[[], object]) -> None:
    """Lets files create objects of classes whose names begin with `prefix`; `register` calls allow_classes() at the first such name."""
    _registering[prefix] = register


def of_package(path: str) -> type | None:
    """The class of this package that files may name so; None: there is none."""
    for prefix in [prefix for prefix in _registering if path.startswith(prefix)]:
        register = _registering.get(prefix)
        if register is not None:  # no other thread has called it since
            register()
            _registering.pop(prefix, None)
    return _of_package.get(path)


class Constructor:
    """A class or function of the table that files may call, with a check of its arguments."""

    def __init__(self, name: str, function: Callable, creates: type | None = None) -> None:
        self.name, self._function, self.creates = name, function, creates

    def __call__(self, *args):
        return self._function(*args)

    def __repr__(self) -> str:
        return self.name


def is_registered(value: object) -> bool:
    """Whether a user added the object, or this package allows it."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if isinstance(module, str) and isinstance(name, str):
        of_package(f"{torch_name(module)}.{name}")  # allows the classes of its package
    return any(value is added for _, added in _registered.values()) or any(value is own for own in _of_package.values())


def torch_name(module: str) -> str:
    """PyTorch's or torchao's name of a module of this package; other names as they are."""
    if module == "teletensor.torchao" or module.startswith("teletensor.torchao."):
        return module.removeprefix("teletensor.")
    return "torch" + module[len("teletensor") :] if module == "teletensor" or module.startswith("teletensor.") else module
