"""torch.autograd.variable: Variable is an alias of Tensor."""

from .._C import Tensor as Variable

__all__ = ["Variable"]
