"""torch._functorch: forward and backward graphs of functions for user-defined compilers."""
