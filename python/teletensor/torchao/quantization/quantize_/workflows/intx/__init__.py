"""torchao.quantization.quantize_.workflows.intx."""
