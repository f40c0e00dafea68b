"""torchao.quantization.quantize_.workflows.float8."""
