"""torchao.quantization.pt2e.quantizer.quantizer: torch.ao.quantization.quantizer.quantizer."""

from .....ao.quantization.quantizer.quantizer import *  # noqa: F403
