"""torch.autograd.variable's names: a Variable is a Tensor."""

from .._C import Tensor as Variable

__all__ = ["Variable"]
