"""Masked tensors."""
