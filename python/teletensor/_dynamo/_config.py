"""The module type of torch._dynamo.config and torch._functorch.config, and temporary changes of their settings."""

from __future__ import annotations

import sys
from contextlib import ContextDecorator
from types import ModuleType
from typing import Any


class Patch(ContextDecorator):
    """Changes settings of torch._dynamo.config, or of another module, while the context is entered or the function runs.

    Args:
        arg1: a setting's name, with its value in `arg2`, or a dict or tuple of pairs of settings.
        _config: the module; None for torch._dynamo.config.
        changes: settings by name.

    Raises:
        AttributeError: there is no such setting.
    """

    def __init__(self, arg1: Any = None, arg2: Any = None, *, _config: ModuleType | None = None, **changes: Any) -> None:
        self._changes = {arg1: arg2} if isinstance(arg1, str) else {**dict(arg1 or {}), **changes}
        self._config = _config or sys.modules[f"{__package__}.config"]
        self._previous: list[dict[str, Any]] = []

    def __enter__(self) -> None:
        self._previous.append({name: getattr(self._config, name) for name in self._changes})
        for name, value in self._changes.items():
            setattr(self._config, name, value)

    def __exit__(self, *exc: object) -> None:
        for name, value in self._previous.pop().items():
            setattr(self._config, name, value)


class Settings(ModuleType):
    """A module whose variables are settings."""

    patch = staticmethod(Patch)
