"""Mixed precision on GPUs; provides the names of torch.cuda.amp."""

from __future__ import annotations

import warnings

from ...amp import autocast_mode as _mode
from . import grad_scaler
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "grad_scaler"]


class autocast(_mode.autocast):  # noqa: N801 - PyTorch's name
    """torch.autocast("cuda")."""

    def __init__(self, enabled: bool = True, dtype=_mode._C.float16, cache_enabled: bool = True):
        warnings.warn(
            "`torch.cuda.amp.autocast(args...)` is deprecated. Please use `torch.amp.autocast('cuda', args...)` instead.",
            FutureWarning, stacklevel=2,
        )  # fmt: skip
        super().__init__("cuda", dtype, enabled, cache_enabled)


def custom_fwd(fwd=None, *, cast_inputs=None):
    """torch.amp.custom_fwd of "cuda"."""
    warnings.warn(
        "`torch.cuda.amp.custom_fwd(args...)` is deprecated. "
        "Please use `torch.amp.custom_fwd(args..., device_type='cuda')` instead.",
        FutureWarning, stacklevel=2,
    )  # fmt: skip
    return _mode.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd):
    """torch.amp.custom_bwd of "cuda"."""
    warnings.warn(
        "`torch.cuda.amp.custom_bwd(args...)` is deprecated. "
        "Please use `torch.amp.custom_bwd(args..., device_type='cuda')` instead.",
        FutureWarning, stacklevel=2,
    )  # fmt: skip
    return _mode.custom_bwd(bwd, device_type="cuda")


def __getattr__(name: str):
    """The module autocast_mode, which imports this one."""
    if name == "autocast_mode":
        import importlib

        return importlib.import_module(f"{__name__}.autocast_mode")
    raise AttributeError(f"module 'teletensor.cuda.amp' has no attribute {name!r}")
