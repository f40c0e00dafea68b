"""Wrappers that recompute a module's activations in backward."""
