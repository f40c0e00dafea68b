"""torch.cpu.amp: mixed precision on CPUs. PyTorch deprecates these names."""

from __future__ import annotations

import warnings

from . import autocast_mode as _mode
from . import grad_scaler as _scaler

__all__ = ["GradScaler", "autocast"]


class autocast(_mode.autocast):  # noqa: N801 - PyTorch's name
    """torch.autocast("cpu")."""

    def __init__(self, enabled: bool = True, dtype=_mode._C.bfloat16, cache_enabled: bool = True):
        warnings.warn(
            "`torch.cpu.amp.autocast(args...)` is deprecated. Please use `torch.amp.autocast('cpu', args...)` instead.",
            FutureWarning, stacklevel=2,
        )  # fmt: skip
        super().__init__("cpu", dtype, enabled, cache_enabled)


class GradScaler(_scaler.GradScaler):
    """torch.amp.GradScaler("cpu")."""

    def __init__(self, init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        warnings.warn(
            "`torch.cpu.amp.GradScaler(args...)` is deprecated. Please use `torch.amp.GradScaler('cpu', args...)` instead.",
            FutureWarning, stacklevel=2,
        )  # fmt: skip
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
