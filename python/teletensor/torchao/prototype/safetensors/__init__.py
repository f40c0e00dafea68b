"""torchao.prototype.safetensors: state dicts of quantized tensors as plain tensors."""
