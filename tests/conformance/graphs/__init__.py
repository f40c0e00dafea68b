"""Graphs of operators compared with PyTorch's: `python -m tests.conformance.graphs`."""
