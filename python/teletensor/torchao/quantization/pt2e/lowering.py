"""torchao.quantization.pt2e.lowering: integer kernels for converted models."""

from ....ao.quantization.pt2e.lowering import lower_pt2e_quantized_to_x86

__all__ = ["lower_pt2e_quantized_to_x86"]
