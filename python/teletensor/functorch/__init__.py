"""functorch: the package that torch.func has replaced, for programs that still import it. Its functions warn."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from .. import func as _func
from .._C import Tensor
from ..func import functional_call, stack_module_state
from ..nn import Module

__all__ = [
    "FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "functionalize", "grad", "grad_and_value", "hessian",
    "jacfwd", "jacrev", "jvp", "make_functional", "make_functional_with_buffers", "make_fx", "vjp", "vmap",
]  # fmt: skip


def _warn(name: str, instead: str) -> None:
    warnings.warn(
        f"We've integrated functorch into PyTorch. `functorch.{name}` is deprecated as of PyTorch 2.0 and will be deleted in a future "
        f"version of PyTorch >= 2.3. Please use `{instead}` instead.",
        FutureWarning,
        stacklevel=3,
    )


def _former(name: str, place: str = "torch.func") -> Callable:
    """The function of torch.func that has replaced this one, with a warning."""

    def call(*args: Any, **kwargs: Any) -> Any:
        _warn(name, f"{place}.{name}")
        return getattr(_func, name)(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"{place}.{name}, with a warning."
    return call


vmap = _former("vmap", "torch")
grad, grad_and_value, vjp, jvp = (_former(name) for name in ("grad", "grad_and_value", "vjp", "jvp"))
jacrev, jacfwd, hessian, functionalize = (_former(name) for name in ("jacrev", "jacfwd", "hessian", "functionalize"))


def make_fx(*args: Any, **kwargs: Any) -> Callable:
    """torch.fx.experimental.proxy_tensor.make_fx."""
    from ..fx.experimental.proxy_tensor import make_fx as made

    return made(*args, **kwargs)


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
    _warn("make_functional", "torch.func.functional_call")
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
    _warn("make_functional_with_buffers", "torch.func.functional_call")
    module = copy.deepcopy(model)
    params, buffers = _values(module, disable_autograd_tracking)
    return FunctionalModuleWithBuffers(module, tuple(params), tuple(buffers)), tuple(params.values()), tuple(buffers.values())


def combine_state_for_ensemble(
    models: Sequence[Module],
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """The function of the first model, and all models' parameters and buffers, stacked, for vmap."""
    _warn("combine_state_for_ensemble", "torch.func.stack_module_state")
    params, buffers = stack_module_state(list(models))
    module = copy.deepcopy(models[0])
    return FunctionalModuleWithBuffers(module, tuple(params), tuple(buffers)), tuple(params.values()), tuple(buffers.values())
