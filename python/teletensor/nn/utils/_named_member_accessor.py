"""torch.nn.utils._named_member_accessor: exchanges of a module's tensor, parameter or not, by its name."""

from __future__ import annotations

from typing import Any

from ..._C import Tensor
from ..modules.module import Module

__all__ = ["set_tensor", "swap_tensor"]

_MISSING: Any = object()


def _check(module: Module, name: str, tensor: Any) -> None:
    if not isinstance(module, Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if tensor is not None and tensor is not _MISSING and not isinstance(tensor, Tensor):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if name == "":
        raise KeyError('tensor name can\'t be empty string ""')


def _owner(module: Module, name: str) -> dict[str, Any] | None:
    """The module's parameters or buffers, if the name is one of theirs."""
    return next((members for members in (module._parameters, module._buffers) if name in members), None)


def set_tensor(module: Module, name: str, tensor: Tensor | None) -> None:
    """Replaces a parameter, a buffer or an attribute, without the checks of registered parameters."""
    _check(module, name, tensor)
    members = _owner(module, name)
    if members is None:
        setattr(module, name, tensor)
    else:
        members[name] = tensor


def swap_tensor(module: Module, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """Like set_tensor(). Returns the tensor before.

    Raises:
        AttributeError: the module has no such attribute, and `allow_missing` is False.
        TypeError: the attribute is no tensor.
    """
    _check(module, name, tensor)
    members = _owner(module, name)
    if members is not None:
        before = members.pop(name) if tensor is _MISSING else members[name]
        if tensor is not _MISSING:
            members[name] = tensor
        return before
    if not hasattr(module, name) and not allow_missing:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    before = getattr(module, name, _MISSING)
    if before is not _MISSING and before is not None and not isinstance(before, Tensor):
        raise TypeError(f"attribute `{name}`: {before} is not an instance of torch.Tensor")
    if tensor is not _MISSING:
        setattr(module, name, tensor)
    elif hasattr(module, name):
        delattr(module, name)
    return before
