"""PyTorch's functions that are made of operators, by subject; the operators are the engine's."""
