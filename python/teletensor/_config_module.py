"""The module type of torch._dynamo.config and similar modules, and temporary changes of their settings."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Mapping
from contextlib import ContextDecorator
from types import ModuleType
from typing import Any


class Patch(ContextDecorator):
    """Changes settings of torch._dynamo.config, or of another module, while the context is entered or the function runs.

    Args:
        arg1: a setting's name, with its value in `arg2`, or a dict or tuple of pairs of settings.
        _config: the module.
        changes: settings by name.

    Raises:
        AttributeError: there is no such setting.
        NotImplementedError: a setting cannot have the value.
    """

    def __init__(self, arg1: Any = None, arg2: Any = None, *, _config: ModuleType, **changes: Any) -> None:
        self._changes = {arg1: arg2} if isinstance(arg1, str) else {**dict(arg1 or {}), **changes}
        self._config = _config
        self._previous: list[dict[str, Any]] = []

    def __enter__(self) -> None:
        previous = {name: getattr(*self._owner(name)) for name in self._changes}
        try:
            for name, value in self._changes.items():
                setattr(*self._owner(name), value)
        except Exception:
            self._restore(previous)
            raise
        self._previous.append(previous)

    def __exit__(self, *exc: object) -> None:
        self._restore(self._previous.pop())

    def _restore(self, previous: dict[str, Any]) -> None:
        for name, value in previous.items():
            setattr(*self._owner(name), value)

    def _owner(self, name: str) -> tuple[Any, str]:
        """Where a setting is, and its name there: "triton.cudagraphs" is one of a group."""
        group, _, setting = name.rpartition(".")
        return (getattr(self._config, group) if group else self._config), setting


def _check_kind(owner: str, name: str, current: Any, value: Any) -> None:
    """Raises TypeError unless a setting that is a bool or an int is set to one. None is permitted, as where PyTorch declares it."""
    if value is not None and type(current) in (bool, int) and type(value) is not type(current):
        setting = f"{owner.rpartition('teletensor.')[2]}.{name}"
        raise TypeError(f"[{setting}] expected {type(current).__name__}, got {type(value).__name__}")


class Group:
    """Settings of a module that have a name in common, such as torch._inductor.config.triton's."""

    def __init__(self, owner: str, **settings: Any) -> None:
        vars(self).update(settings, _owner=owner)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"module {self._owner!r} has no setting {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in vars(self):
            raise AttributeError(f"module {self._owner!r} has no setting {name!r}")
        _check_kind(self._owner, name, vars(self)[name], value)
        super().__setattr__(name, value)


class Settings(ModuleType):
    """A module whose variables are settings.

    A setting that does not exist cannot be set, and one that has no effect keeps its default, if another value would change results,
    errors or what is kept in memory.
    """

    patch = property(lambda self: functools.partial(Patch, _config=self))

    def __getattr__(self, name: str) -> Any:
        if name in vars(self).get("_aliases", ()):
            module, original = vars(self)["_aliases"][name]
            return getattr(importlib.import_module(module), original)
        raise AttributeError(f"module {self.__name__!r} has no setting {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__"):
            return super().__setattr__(name, value)
        if name in vars(self).get("_aliases", ()):
            module, original = vars(self)["_aliases"][name]
            return setattr(importlib.import_module(module), original, value)
        if name not in vars(self):
            raise AttributeError(f"module {self.__name__!r} has no setting {name!r}")
        fixed = vars(self).get("_fixed", {})
        if name in fixed and value != fixed[name][0]:
            default, reason = fixed[name]
            setting = f"{self.__name__.rpartition('teletensor.')[2]}.{name}"
            raise NotImplementedError(f"[{setting}] expected {default!r}, got {value!r}: {reason}")
        check = vars(self).get("_checks", {}).get(name)
        if check is not None:
            check(value)
        else:
            _check_kind(self.__name__, name, vars(self)[name], value)
        super().__setattr__(name, value)


def make_settings(
    name: str, aliases: Mapping[str, tuple[str, str]] | None = None, fixed: Mapping[str, str] | None = None,
    checks: Mapping[str, Any] | None = None,
) -> None:  # fmt: skip
    """Makes settings of the variables of a module.

    Args:
        name: of the module, after its variables are defined.
        aliases: other names of settings: the names of their modules, and theirs.
        fixed: settings that keep their defaults, and why.
        checks: functions of a new value that raise an error if the setting cannot have it.
    """
    module = sys.modules[name]
    module._aliases = dict(aliases or {})
    module._fixed = {setting: (vars(module)[setting], reason) for setting, reason in (fixed or {}).items()}
    module._checks = dict(checks or {})
    module.__class__ = Settings
