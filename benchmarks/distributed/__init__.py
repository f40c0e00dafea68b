"""Collectives and data-parallel training, compared with PyTorch's Gloo on the same ranks."""
