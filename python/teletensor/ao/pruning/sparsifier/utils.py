"""torch.ao.pruning.sparsifier.utils: the parametrization that applies a mask, and names of modules."""

from __future__ import annotations

from itertools import chain
from typing import Any

from ...._C import Tensor
from ....nn import Module
from ....nn.utils.parametrize import is_parametrized, type_before_parametrizations

__all__ = ["FakeSparsity", "fqn_to_module", "get_arg_info_from_tensor_fqn", "module_contains_param", "module_to_fqn", "swap_module"]


class FakeSparsity(Module):
    """Multiplies a parameter by a mask, which is not saved with the module.

    Args:
        mask: written in place when the mask is updated.
    """

    mask: Tensor

    def __init__(self, mask: Tensor) -> None:
        super().__init__()
        self.register_buffer("mask", mask)

    def forward(self, x: Tensor) -> Tensor:
        """The masked parameter. Raises AssertionError if the mask has other sizes."""
        if self.mask.shape != x.shape:
            raise AssertionError(f"mask shape ({self.mask.shape}) must match x shape ({x.shape})")
        return self.mask * x

    def state_dict(self, *_args: Any, **_kwargs: Any) -> dict:
        """Empty: the mask belongs to the sparsifier's state."""
        return {}


def module_contains_param(module: Module, parametrization: type[Module]) -> bool:
    """Whether a parametrization of this class applies to a tensor of the module."""
    if not is_parametrized(module):
        return False
    return any(isinstance(p, parametrization) for several in module.parametrizations.values() for p in several)


def swap_module(mod: Module, mapping: dict[type[Module], type[Module]]) -> Module:
    """The module that the mapping's class makes of it by ``from_dense``, with its hooks and on its device; or the module.

    Raises:
        AssertionError: its tensors are on several devices.
    """
    kind = mapping.get(type_before_parametrizations(mod))
    if kind is None:
        return mod
    made = kind.from_dense(mod)
    for hook in mod._forward_pre_hooks.values():
        made.register_forward_pre_hook(hook)
    for hook in mod._forward_hooks.values():
        made.register_forward_hook(hook)
    devices = {str(p.device) for p in chain(mod.parameters(), mod.buffers())}
    if len(devices) > 1:
        raise AssertionError(f"swap_module only works with cpu or single-device CUDA modules, but got devices {devices}")
    return made.to(devices.pop()) if devices else made


def module_to_fqn(model: Module, module: Module, prefix: str = "") -> str | None:
    """The name of a module below another, after ``prefix``; None: it is not below it."""
    if module is model:
        return ""
    for name, child in model.named_children():
        below = module_to_fqn(child, module, ".")
        if below is not None:
            return prefix + name + below
    return None


def fqn_to_module(model: Module | None, path: str) -> Any:
    """The module or tensor with a name; None: there is none."""
    for name in path.split(".") if path else ():
        model = getattr(model, name, None)
    return model


def get_arg_info_from_tensor_fqn(model: Module, tensor_fqn: str) -> dict[str, Any]:
    """The module that a tensor's name stands for, both names, and the tensor's name in the module."""
    module_fqn, _, tensor_name = tensor_fqn.rpartition(".")
    return {
        "module_fqn": module_fqn, "module": fqn_to_module(model, module_fqn), "tensor_name": tensor_name, "tensor_fqn": tensor_fqn,
    }  # fmt: skip
