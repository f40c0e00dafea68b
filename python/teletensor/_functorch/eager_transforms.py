"""Provides names of torch._functorch.eager_transforms."""

from ..func import debug_unwrap, functionalize, hessian, jacfwd, jacrev, jvp, linearize, vjp

__all__ = ["debug_unwrap", "functionalize", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp"]
