"""torchao.quantization.quantize_.workflows.int4."""
