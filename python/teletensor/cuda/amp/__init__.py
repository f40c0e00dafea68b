"""Mixed precision on GPUs; provides the names of torch.cuda.amp."""

from __future__ import annotations

from ... import _C
from ...amp import autocast_mode as _mode
from ...amp._deprecated import autocast_of, warn
from . import grad_scaler
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "grad_scaler"]

autocast = autocast_of("cuda", _C.float16, __name__)


def custom_fwd(fwd=None, *, cast_inputs=None):
    """torch.amp.custom_fwd of "cuda"."""
    warn("cuda", "custom_fwd", "custom_fwd(args..., device_type='cuda')")
    return _mode.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd):
    """torch.amp.custom_bwd of "cuda"."""
    warn("cuda", "custom_bwd", "custom_bwd(args..., device_type='cuda')")
    return _mode.custom_bwd(bwd, device_type="cuda")


def __getattr__(name: str):
    """The module autocast_mode, which imports this one."""
    if name == "autocast_mode":
        import importlib

        return importlib.import_module(f"{__name__}.autocast_mode")
    raise AttributeError(f"module 'teletensor.cuda.amp' has no attribute {name!r}")
