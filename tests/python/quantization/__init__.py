"""torch.ao.quantization and torch.ao.nn: values equal PyTorch's, which record.py stored in values.json."""
