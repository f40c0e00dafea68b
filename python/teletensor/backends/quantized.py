"""torch.backends.quantized: there are no quantized dtypes yet."""

engine = "none"
supported_engines = ["none"]
