"""Mixed precision on GPUs; provides the names of torch.cuda.amp."""

from __future__ import annotations

import functools

from ...amp import autocast_mode as _mode
from . import grad_scaler
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "grad_scaler"]


class autocast(_mode.autocast):  # noqa: N801 - PyTorch's name
    """torch.autocast("cuda")."""

    def __init__(self, enabled: bool = True, dtype=None, cache_enabled: bool = True):
        super().__init__("cuda", dtype, enabled, cache_enabled)


custom_fwd = functools.partial(_mode.custom_fwd, device_type="cuda")
custom_bwd = functools.partial(_mode.custom_bwd, device_type="cuda")


def __getattr__(name: str):
    """The module autocast_mode, which imports this one."""
    if name == "autocast_mode":
        import importlib

        return importlib.import_module(f"{__name__}.autocast_mode")
    raise AttributeError(f"module 'teletensor.cuda.amp' has no attribute {name!r}")
