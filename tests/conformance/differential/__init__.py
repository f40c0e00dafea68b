"""Calls public functions with each argument moved from its default, in PyTorch and in teletensor, and compares.

`make differential` compares values, dtypes, sizes, `requires_grad`, the effect on the arguments and exception types, and
writes `docs/differential.md`. Base calls of tensor functions are PyTorch's operator samples (`op_db`); those of other
functions and classes are in `calls.yaml`. `moved.yaml` gives the values of moved arguments by name, and by type.
"""
