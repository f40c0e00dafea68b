"""Collectives and data-parallel training, beside PyTorch's Gloo on the same ranks."""
