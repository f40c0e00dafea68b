"""torch._functorch.make_functional: modules as functions of lists of their parameters and buffers."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from .._C import Tensor
from ..func import functional_call, stack_module_state
from ..nn import Module

__all__ = [
    "FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "make_functional", "make_functional_with_buffers",
]  # fmt: skip


class FunctionalModuleWithBuffers:
    """A module as a function of its parameters and buffers, in the order of their names."""

    def __init__(self, module: Module, param_names: Sequence[str], buffer_names: Sequence[str]) -> None:
        self.stateless_model = module
        self.param_names, self.buffer_names = tuple(param_names), tuple(buffer_names)

    def __call__(self, params: Sequence[Tensor], buffers: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        """Calls the module with these parameters and buffers."""
        state = dict(zip(self.param_names, params, strict=True)) | dict(zip(self.buffer_names, buffers, strict=True))
        return functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModule:
    """A module without buffers as a function of its parameters, in the order of their names."""

    def __init__(self, module: Module, param_names: Sequence[str]) -> None:
        self.stateless_model = module
        self.param_names = tuple(param_names)

    def __call__(self, params: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        """Calls the module with these parameters."""
        return functional_call(self.stateless_model, dict(zip(self.param_names, params, strict=True)), args, kwargs)


def _values(module: Module, disable_autograd_tracking: bool) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    params, buffers = dict(module.named_parameters()), dict(module.named_buffers())
    if disable_autograd_tracking:
        for p in params.values():
            p.requires_grad_(False)
    return params, buffers


def make_functional(model: Module, disable_autograd_tracking: bool = False) -> tuple[FunctionalModule, tuple[Tensor, ...]]:
    """(function, parameters): function(parameters, *args) is the module's result. The module must have no buffers.

    Args:
        disable_autograd_tracking: the parameters do not require grad.
    """
    module = copy.deepcopy(model)
    params, buffers = _values(module, disable_autograd_tracking)
    if buffers:
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    return FunctionalModule(module, tuple(params)), tuple(params.values())


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """(function, parameters, buffers): function(parameters, buffers, *args) is the module's result."""
    module = copy.deepcopy(model)
    params, buffers = _values(module, disable_autograd_tracking)
    return FunctionalModuleWithBuffers(module, tuple(params), tuple(buffers)), tuple(params.values()), tuple(buffers.values())


def combine_state_for_ensemble(
    models: Sequence[Module],
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """The function of the first model, and all models' parameters and buffers, stacked, for vmap."""
    params, buffers = stack_module_state(list(models))
    module = copy.deepcopy(models[0])
    return FunctionalModuleWithBuffers(module, tuple(params), tuple(buffers)), tuple(params.values()), tuple(buffers.values())
