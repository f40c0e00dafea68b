"""torchao.quantization.quantize_.workflows."""
