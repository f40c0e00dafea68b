"""torch.cuda.amp.autocast_mode: autocast on GPUs."""

from __future__ import annotations

from ... import _C
from ...amp import autocast_mode as _mode
from ...amp._deprecated import autocast_of, warn

__all__ = ["autocast", "custom_bwd", "custom_fwd"]

autocast = autocast_of("cuda", _C.float16, __package__)


def custom_fwd(fwd=None, *, cast_inputs=None):
    """torch.amp.custom_fwd of "cuda"."""
    warn("cuda", "custom_fwd", "custom_fwd(args..., device_type='cuda')")
    return _mode.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd):
    """torch.amp.custom_bwd of "cuda"."""
    warn("cuda", "custom_bwd", "custom_bwd(args..., device_type='cuda')")
    return _mode.custom_bwd(bwd, device_type="cuda")
