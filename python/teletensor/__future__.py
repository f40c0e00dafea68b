"""torch.__future__: how Module.to() and similar methods convert parameters."""

from __future__ import annotations

__all__ = [
    "get_overwrite_module_params_on_conversion", "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion", "set_swap_module_params_on_conversion",
]  # fmt: skip

_overwrite = False
_swap = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Sets whether conversions assign new parameters to the module, instead of changing the existing ones through `.data`."""
    global _overwrite
    _overwrite = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Whether conversions assign new parameters. The default is False."""
    return _overwrite


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Sets whether conversions exchange parameters with the converted ones by `torch.utils.swap_tensors`. It takes precedence
    over set_overwrite_module_params_on_conversion().
    """
    global _swap
    _swap = value


def get_swap_module_params_on_conversion() -> bool:
    """Whether conversions swap tensors. The default is False."""
    return _swap
