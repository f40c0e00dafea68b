"""Sparse tensors: components (indices and values) in the engine, under one object of PyTorch's sparse layouts."""
