"""torchao.quantization.quantize_.workflows.nf4."""
