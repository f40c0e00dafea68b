"""torchao.prototype.quantization."""
