"""PyTorch functions that are composed of several operators, one module per subject."""
