"""torch.ao.ns: comparison of the weights and values of a model before and after quantization."""
