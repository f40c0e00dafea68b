"""Algorithms for data-parallel training."""
