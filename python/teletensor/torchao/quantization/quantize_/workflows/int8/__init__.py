"""torchao.quantization.quantize_.workflows.int8."""
