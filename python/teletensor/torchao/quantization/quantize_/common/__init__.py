"""torchao.quantization.quantize_.common."""
