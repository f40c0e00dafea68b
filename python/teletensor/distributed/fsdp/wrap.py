"""Policies that select the submodules that FullyShardedDataParallel wraps."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...nn.modules.activation import MultiheadAttention
from ...nn.modules.container import ModuleDict, ModuleList
from ...nn.modules.module import Module

__all__ = ["CustomPolicy", "ModuleWrapPolicy", "always_wrap_policy", "enable_wrap", "lambda_auto_wrap_policy",
           "size_based_auto_wrap_policy", "transformer_auto_wrap_policy", "wrap"]  # fmt: skip


def always_wrap_policy(*args, **kwargs) -> bool:
    """Wraps every submodule."""
    return True


class _Policy:
    def options_for(self, module: Module) -> dict[str, Any] | None:
        """Options of the module's wrapper that differ from the root's, or None if the module is not wrapped."""
        raise NotImplementedError


class ModuleWrapPolicy(_Policy):
    """Wraps the modules of some classes. Also callable as a policy function."""

    def __init__(self, module_classes: Iterable[type[Module]]):
        self._module_classes = set(module_classes)
        self._module_classes_str = str(self._module_classes)

    def options_for(self, module: Module) -> dict[str, Any] | None:
        return {} if isinstance(module, tuple(self._module_classes)) else None

    def __call__(self, module: Module, recurse: bool, *args, **kwargs) -> bool:
        return _module_wrap_policy(module, recurse, nonwrapped_numel=-1, module_classes=self._module_classes)

    def __repr__(self) -> str:
        return f"{super().__repr__()}({self._module_classes_str})"


class CustomPolicy(_Policy):
    """Wraps the modules for which a function returns True, or a dict with options of their wrappers."""

    def __init__(self, lambda_fn: Callable[[Module], bool | dict[str, Any]]):
        self._lambda_fn = lambda_fn

    def options_for(self, module: Module) -> dict[str, Any] | None:
        result = self._lambda_fn(module)
        if not isinstance(result, (dict, bool)):
            raise ValueError(
                f"The lambda_fn passed to CustomPolicy should return False/True or a kwarg dict, but it returned {result}"
            )
        return result if isinstance(result, dict) else {} if result else None


def _module_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, module_classes: set[type[Module]]
) -> bool:
    """Wraps the modules of some classes."""
    return recurse or isinstance(module, tuple(module_classes))


def lambda_auto_wrap_policy(module: Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable) -> bool:
    """Wraps the modules for which a function returns True."""
    return recurse or lambda_fn(module)


def transformer_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: set[type[Module]]
) -> bool:
    """Wraps the modules of some classes, usually a transformer's layers."""
    return _module_wrap_policy(module, recurse, nonwrapped_numel, transformer_layer_cls)


def _wrap_module_cls_individually(
    module: Module, module_classes: Iterable[type], recurse: bool, *args, **kwargs
) -> bool:
    return recurse or isinstance(module, tuple(module_classes))


def _or_policy(module: Module, recurse: bool, nonwrapped_numel: int, policies: Iterable[Callable]) -> bool:
    """Wraps the modules that any of several policies wraps."""
    return any(policy(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel) for policy in policies)


def size_based_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, min_num_params: int = int(1e8),
    force_leaf_modules: set[type[Module]] | None = None, exclude_wrap_modules: set[type[Module]] | None = None,
) -> bool:  # fmt: skip
    """Wraps a module if it has at least ``min_num_params`` parameters that are not wrapped yet.

    Args:
        force_leaf_modules: classes whose submodules are not wrapped; by default MultiheadAttention.
        exclude_wrap_modules: classes that are not wrapped; by default ModuleList and ModuleDict.
    """
    leaves = size_based_auto_wrap_policy.FORCE_LEAF_MODULES if force_leaf_modules is None else force_leaf_modules
    excluded = (
        size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES if exclude_wrap_modules is None else exclude_wrap_modules
    )
    is_large = nonwrapped_numel >= min_num_params
    if recurse:
        return is_large and not isinstance(module, tuple(leaves))
    return is_large and not isinstance(module, tuple(excluded))


size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES = {ModuleList, ModuleDict}
size_based_auto_wrap_policy.FORCE_LEAF_MODULES = {MultiheadAttention}


_wrapper: tuple[Callable, dict[str, Any]] | None = None  # the class and options of enable_wrap()


@contextlib.contextmanager
def enable_wrap(*, wrapper_cls: Any, **wrapper_kwargs: Any) -> Iterator[None]:
    """Within the context, wrap() wraps modules with the class and these options."""
    global _wrapper
    before, _wrapper = _wrapper, (wrapper_cls, wrapper_kwargs)
    try:
        yield
    finally:
        _wrapper = before


def wrap(module: Module, **wrap_overrides: Any) -> Module:
    """Wraps the module in the context of enable_wrap(); returns it unchanged elsewhere."""
    if _wrapper is None:
        return module
    wrapper, options = _wrapper
    return wrapper(module, **{**options, **wrap_overrides})


def wrap_submodules(
    root: Module, policy, wrapper: Callable, ignored: set[Module], ignored_parameters: set, options: dict[str, Any]
) -> None:
    """Replaces the submodules that the policy selects by ``wrapper(submodule, **options)``, children first.

    Args:
        policy: a policy object, or a function (module, recurse, nonwrapped_numel) -> bool.
        ignored: modules that are not wrapped, with all their submodules.
        ignored_parameters: parameters that do not count.
    """
    if isinstance(policy, _Policy):
        _wrap_selected(root, policy, wrapper, ignored, options)
        return
    if not callable(policy):
        raise ValueError(f"Unexpected auto_wrap_policy: {policy}")
    _wrap_by_function(root, policy, wrapper, ignored, ignored_parameters, options, is_root=True)


def _replace(root: Module, old: Module, new: Module) -> None:
    for module in list(root.modules()):
        for name, child in module._modules.items():
            if child is old and module is not new:
                module._modules[name] = new


def _wrap_selected(root: Module, policy: _Policy, wrapper: Callable, ignored: set[Module], options: dict) -> None:
    selected: list[tuple[Module, dict]] = []
    _select(root, policy, ignored, set(), selected)
    for module, changed in selected:
        if module is not root:
            _replace(root, module, wrapper(module, **{**options, **changed}))


def _select(module: Module, policy: _Policy, ignored: set[Module], seen: set, selected: list) -> None:
    seen.add(module)
    for child in module.children():
        if child not in seen and child not in ignored:
            _select(child, policy, ignored, seen, selected)
    if (changed := policy.options_for(module)) is not None:
        selected.append((module, changed))


def _wrap_by_function(
    module: Module, policy: Callable, wrapper: Callable, ignored: set[Module], ignored_parameters: set, options: dict, *,
    is_root: bool = False, wrapped: dict | None = None,
) -> tuple[Module, int]:  # fmt: skip
    """Returns the module or its wrapper, and the number of elements of its parameters that are now wrapped."""
    wrapped = {} if wrapped is None else wrapped
    numel = sum(p.numel() for p in module.parameters() if p not in ignored_parameters)
    if not policy(module=module, recurse=True, nonwrapped_numel=numel):
        return module, 0
    inside = 0
    for name, child in module._modules.items():
        if child is None or child in ignored:
            continue
        if child not in wrapped:
            wrapped[child] = _wrap_by_function(
                child, policy, wrapper, ignored, ignored_parameters, options, wrapped=wrapped
            )
        new, count = wrapped[child]
        module._modules[name] = new
        inside += count
    if not is_root and policy(module=module, recurse=False, nonwrapped_numel=numel - inside):
        return wrapper(module, **options), numel
    return module, inside
