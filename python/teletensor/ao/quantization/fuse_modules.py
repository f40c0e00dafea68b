"""Fusion of modules that a model holds under names: convolution, batch norm and ReLU become one module."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from ...nn import Identity, Module
from ...nn.utils.parametrize import type_before_parametrizations
from .fuser_method_mappings import fuse_conv_bn, fuse_conv_bn_relu, get_fuser_method  # noqa: F401 - PyTorch has them here too

__all__ = ["fuse_known_modules", "fuse_modules", "fuse_modules_qat"]


def _get_module(model: Module, key: str) -> Module:
    for name in key.split("."):
        model = getattr(model, name)
    return model


def _set_module(model: Module, key: str, module: Module) -> None:
    parent, _, name = key.rpartition(".")
    setattr(_get_module(model, parent) if parent else model, name, module)


def fuse_known_modules(
    mod_list: list[Module], is_qat: bool, additional_fuser_method_mapping: dict | None = None
) -> list[Module]:
    """The fused module, and Identity modules in place of the others. Hooks move to the fused module."""
    types = tuple(type_before_parametrizations(m) for m in mod_list)
    fused = get_fuser_method(types, additional_fuser_method_mapping)(is_qat, *mod_list)
    for hook in mod_list[0]._forward_pre_hooks.values():
        fused.register_forward_pre_hook(hook)
    mod_list[0]._forward_pre_hooks.clear()
    for hook in mod_list[-1]._forward_hooks.values():
        fused.register_forward_hook(hook)
    mod_list[-1]._forward_hooks.clear()
    return [fused, *(Identity().train(mod_list[0].training) for _ in mod_list[1:])]


def _fuse(
    model: Module, modules_to_fuse: list, is_qat: bool, inplace: bool, fuser_func: Callable, fuse_custom_config_dict: dict | None
) -> Module:
    if not inplace:
        model = copy.deepcopy(model)
    additional = (fuse_custom_config_dict or {}).get("additional_fuser_method_mapping", {})
    single = all(isinstance(name, str) for name in modules_to_fuse)
    for names in [modules_to_fuse] if single else modules_to_fuse:
        made = fuser_func([_get_module(model, name) for name in names], is_qat, additional)
        for name, module in zip(names, made):
            _set_module(model, name, module)
    return model


def fuse_modules(
    model: Module, modules_to_fuse: list, inplace: bool = False, fuser_func: Callable = fuse_known_modules,
    fuse_custom_config_dict: dict[str, Any] | None = None,
) -> Module:  # fmt: skip
    """Fuses modules for evaluation. The model must be in evaluation mode.

    Args:
        model: a module.
        modules_to_fuse: the names of modules that follow each other, or a list of such lists.
        inplace: changes the model; by default a copy.
        fuser_func: fuses a list of modules, as fuse_known_modules.
        fuse_custom_config_dict: ``additional_fuser_method_mapping``: functions by the classes of modules.
    """
    return _fuse(model, modules_to_fuse, False, inplace, fuser_func, fuse_custom_config_dict)


def fuse_modules_qat(
    model: Module, modules_to_fuse: list, inplace: bool = False, fuser_func: Callable = fuse_known_modules,
    fuse_custom_config_dict: dict[str, Any] | None = None,
) -> Module:  # fmt: skip
    """Fuses modules for quantization-aware training. The model must be in training mode. Arguments as of fuse_modules."""
    return _fuse(model, modules_to_fuse, True, inplace, fuser_func, fuse_custom_config_dict)
