"""torchao.quantization.pt2e.quantizer.embedding_quantizer: torch.ao.quantization.quantizer.embedding_quantizer."""

from .....ao.quantization.quantizer.embedding_quantizer import *  # noqa: F403
