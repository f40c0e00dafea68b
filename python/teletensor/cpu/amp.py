"""torch.cpu.amp: mixed precision on CPUs. PyTorch deprecates these names."""

from __future__ import annotations

from .. import _C
from ..amp._deprecated import autocast_of, scaler_of

__all__ = ["GradScaler", "autocast"]

autocast = autocast_of("cpu", _C.bfloat16, __name__)
GradScaler = scaler_of("cpu", __name__)
