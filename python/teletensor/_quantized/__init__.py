"""Quantized tensors: integers in the engine, with the scale and zero point that map them to numbers."""
