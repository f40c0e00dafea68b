"""torchao.quantization.pt2e.quantizer.arm_inductor_quantizer: torch.ao.quantization.quantizer.arm_inductor_quantizer."""

from .....ao.quantization.quantizer.arm_inductor_quantizer import *  # noqa: F403
