"""Handles of hooks, and the result of load_state_dict."""

from __future__ import annotations

import itertools
import weakref
from collections import namedtuple
from typing import Any, Callable


class RemovableHandle:
    """Handle of a hook. remove() deletes the hook from the registry `hooks` and from the registries in `options`."""

    _numbers = itertools.count()

    def __init__(self, hooks: dict, *, options: tuple[dict, ...] = ()):
        self.hooks, self.options = hooks, options
        self.id = next(RemovableHandle._numbers)

    def remove(self) -> None:
        """Removes the hook; it is not called any more."""
        for registry in (self.hooks, *self.options):
            registry.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc) -> None:
        self.remove()


def register(hooks: dict, hook: Callable, *, prepend: bool = False, options: dict[str, tuple[dict, bool]] | None = None):
    """Adds a hook to an ordered registry.

    `options` maps the name of an option to (registry of the hooks with the option, whether this hook has the option).
    """
    handle = RemovableHandle(hooks, options=tuple(registry for registry, _ in (options or {}).values()))
    hooks[handle.id] = hook
    for registry, enabled in (options or {}).values():
        if enabled:
            registry[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


class ModuleHook:
    """Calls a hook with its module as first argument. Holds the module by a weak reference."""

    def __init__(self, hook: Callable, module: Any):
        self.hook, self.module = hook, weakref.ref(module)

    def __call__(self, *args, **kwargs):
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self) -> dict:
        return {"hook": self.hook, "module": self.module()}

    def __setstate__(self, state: dict) -> None:
        self.hook, self.module = state["hook"], weakref.ref(state["module"])


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """The missing and unexpected keys that load_state_dict found."""

    __slots__ = ()

    def __repr__(self) -> str:
        return super().__repr__() if any(self) else "<All keys matched successfully>"

    __str__ = __repr__
