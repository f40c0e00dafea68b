"""torchao.quantization.quantize_."""
