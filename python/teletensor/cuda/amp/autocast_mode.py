"""torch.cuda.amp.autocast_mode: autocast on GPUs."""

from . import autocast, custom_bwd, custom_fwd

__all__ = ["autocast", "custom_bwd", "custom_fwd"]
