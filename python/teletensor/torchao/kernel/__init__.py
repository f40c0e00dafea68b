"""torchao.kernel: products of quantized tensors."""
