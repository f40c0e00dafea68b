"""torch.distributed._composable.contract: functions that change a module in place and keep a state for it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ...nn.modules.module import Module

STATE_KEY = "__composable_api_state_key"
REGISTRY_KEY = "__composable_api_registry_key"


class _State:
    """The state that a function keeps for a module."""


class RegistryItem:
    """Marks that a function was applied to a module."""


def _get_root_modules(modules: Sequence[Module]) -> list[Module]:
    """The modules that are not submodules of others."""
    inner = {child for module in modules for child in module.modules() if child is not module}
    return [module for module in modules if module not in inner]


def _names(module: Module) -> dict[str, list[str]]:
    return {
        "parameters": [name for name, _ in module.named_parameters()],
        "buffers": [name for name, _ in module.named_buffers()],
        "modules": [name for name, _ in module.named_modules()],
    }


def _check_names(kind: str, before: list[str], after: list[str]) -> None:
    if before == after:
        return
    only_before, only_after = set(before) - set(after), set(after) - set(before)
    if only_before or only_after:
        raise RuntimeError(
            f"Checking {kind}: Composable distributed API implementations cannot modify FQNs.\nFQNs only in original: {only_before}\n"
            f"FQNs only in new: {only_after}"
        )
    raise RuntimeError(f"Checking {kind}: Composable distributed API implementations cannot modify the order of FQNs.")


def contract(state_cls: type = _State) -> Callable:
    """Decorates a function whose first argument is a module, or a sequence of modules.

    The function may be applied once to a module, and must keep the names of parameters, buffers and submodules.
    ``function.state(module)`` returns the object of `state_cls` that it keeps for the module.
    """

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapper(module: Any, *args: Any, **kwargs: Any) -> Any:
            modules = [module] if isinstance(module, Module) else _get_root_modules(list(module))
            state, item = state_cls(), RegistryItem()
            for each in modules:
                states, registry = each.__dict__.setdefault(STATE_KEY, {}), each.__dict__.setdefault(REGISTRY_KEY, {})
                if function in states or function.__name__ in registry:
                    raise AssertionError(
                        "Each distinct composable distributed API can only be applied to a module once. "
                        f"{function.__name__} has already been applied to the following module:\n{each}"
                    )
                states[function], registry[function.__name__] = state, item
            before = [_names(each) for each in modules]
            updated = function(module, *args, **kwargs)
            updated = module if updated is None else updated
            results = [updated] if isinstance(updated, Module) else _get_root_modules(list(updated))
            if len(results) != len(modules):
                raise AssertionError(
                    f"{function.__name__} should return the same number of modules as input modules: expected {len(modules)}, got "
                    f"{len(results)}"
                )
            for old, each in zip(before, results, strict=True):
                for (kind, names), after in zip(old.items(), _names(each).values(), strict=True):
                    _check_names(kind, names, after)
            return updated

        wrapper.state = lambda module: module.__dict__.setdefault(STATE_KEY, {}).get(function)
        return wrapper

    return decorate


def _get_registry(module: Module) -> dict[str, RegistryItem] | None:
    """The functions that were applied to a module, by name; None if there is none."""
    return module.__dict__.get(REGISTRY_KEY)
