"""Quantization of graphs."""
