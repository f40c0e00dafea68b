"""torchao.quantization.pt2e.quantizer.x86_inductor_quantizer: torch.ao.quantization.quantizer.x86_inductor_quantizer."""

from .....ao.quantization.quantizer.x86_inductor_quantizer import *  # noqa: F403
