"""torchao.quantization.transform_module: the functions that apply configurations to modules."""

from __future__ import annotations

from typing import Callable

__all__ = ["register_quantize_module_handler"]

_HANDLERS: dict[type, Callable] = {}


def register_quantize_module_handler(config_type: type) -> Callable:
    """A decorator for a function (module, config) that returns the changed module, or another in its place."""

    def register(handler: Callable) -> Callable:
        _HANDLERS[config_type] = handler
        return handler

    return register


def handler_of(config_type: type) -> Callable:
    """The function of a class of configurations.

    Raises:
        KeyError: none was registered.
    """
    if config_type not in _HANDLERS:
        raise KeyError(f"no handler of {config_type.__name__} is registered; use register_quantize_module_handler")
    return _HANDLERS[config_type]
