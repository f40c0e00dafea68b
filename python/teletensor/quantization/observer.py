"""torch.quantization.observer: names of torch.ao.quantization.observer."""

from ..ao.quantization.observer import *  # noqa: F403
