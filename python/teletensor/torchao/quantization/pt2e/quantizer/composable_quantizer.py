"""torchao.quantization.pt2e.quantizer.composable_quantizer: torch.ao.quantization.quantizer.composable_quantizer."""

from .....ao.quantization.quantizer.composable_quantizer import *  # noqa: F403
