"""The classes of torch.cpu.amp and torch.cuda.amp, which PyTorch deprecates: those of torch.amp with a fixed device type."""

from __future__ import annotations

import warnings

from . import autocast_mode as _mode
from . import grad_scaler as _scaler


def warn(device_type: str, name: str, instead: str) -> None:
    """PyTorch's warning for the caller of the caller: `instead` is the call that replaces torch.<device_type>.amp.<name>."""
    warnings.warn(
        f"`torch.{device_type}.amp.{name}(args...)` is deprecated. Please use `torch.amp.{instead}` instead.",
        FutureWarning, stacklevel=3,
    )  # fmt: skip


def autocast_of(device_type: str, default, module: str) -> type:
    """torch.autocast of one device type, as the class `autocast` of a module; `default`: its dtype."""

    class autocast(_mode.autocast):  # noqa: N801 - PyTorch's name
        def __init__(self, enabled: bool = True, dtype=default, cache_enabled: bool = True):
            warn(device_type, "autocast", f"autocast('{device_type}', args...)")
            super().__init__(device_type, dtype, enabled, cache_enabled)

    return _named(autocast, f'torch.autocast("{device_type}").', module)


def scaler_of(device_type: str, module: str) -> type:
    """torch.amp.GradScaler of one device type, as the class `GradScaler` of a module."""

    class GradScaler(_scaler.GradScaler):
        def __init__(self, init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
            warn(device_type, "GradScaler", f"GradScaler('{device_type}', args...)")
            super().__init__(device_type, init_scale, growth_factor, backoff_factor, growth_interval, enabled)

    return _named(GradScaler, f'torch.amp.GradScaler("{device_type}").', module)


def _named(made: type, doc: str, module: str) -> type:
    made.__doc__, made.__module__, made.__qualname__ = doc, module, made.__name__
    return made
