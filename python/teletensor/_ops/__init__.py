"""PyTorch's functions composed of the engine's operators, by subject."""
