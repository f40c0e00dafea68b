"""Attributes of modules by qualified names, such as block.linear.weight."""

from __future__ import annotations

from typing import Any

from .. import nn
from .._C import Tensor


def _copy_attr(from_module: nn.Module, to_module: nn.Module, target: str) -> None:
    """Copies an attribute of one module to another under the same qualified name; creates the modules on the path."""
    *prefix, field = target.split(".")
    for item in prefix:
        source, destination = getattr(from_module, item), getattr(to_module, item, None)
        if source is destination:
            return
        if destination is None:
            destination = nn.Module()
            setattr(to_module, item, destination)
        from_module, to_module = source, destination
    value = getattr(from_module, field)
    if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
        to_module.register_buffer(field, value, persistent=field not in from_module._non_persistent_buffers_set)
    else:
        setattr(to_module, field, value)


def _assign_attr(from_obj: Any, to_module: nn.Module, target: str) -> None:
    """Sets an attribute of a module by qualified name; creates the modules on the path. Tensors become buffers."""
    *prefix, field = target.split(".")
    for item in prefix:
        below = getattr(to_module, item, None)
        if below is None:
            below = nn.Module()
            setattr(to_module, item, below)
        to_module = below
    if isinstance(from_obj, Tensor) and not isinstance(from_obj, nn.Parameter):
        to_module.register_buffer(field, from_obj)
    else:
        setattr(to_module, field, from_obj)


def _get_attr(model: nn.Module, attr_name: str) -> Any:
    """The attribute of a qualified name."""
    return _get_attr_via_attr_list(model, attr_name.split("."))


def _get_attr_via_attr_list(model: nn.Module, attr_list: list[str]) -> Any:
    """The attribute for the parts of a qualified name; the module itself if there are no parts."""
    for item in attr_list[:-1]:
        model = getattr(model, item, None)
        if model is None:
            raise AssertionError(f"Attribute '{item}' not found in model")
    return getattr(model, attr_list[-1]) if attr_list else model


def _del_attr(model: nn.Module, attr_name: str) -> None:
    """Deletes the attribute of a qualified name."""
    path, _, field = attr_name.rpartition(".")
    delattr(_get_attr(model, path) if path else model, field)


def _has_attr(model: nn.Module, attr_name: str) -> bool:
    """Whether a module has the attribute of a qualified name."""
    for item in attr_name.split("."):
        if not hasattr(model, item):
            return False
        model = getattr(model, item)
    return True
