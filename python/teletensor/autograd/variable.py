"""torch.autograd.variable: Variable, PyTorch's deprecated wrapper of tensors."""

from __future__ import annotations

import warnings

from .. import _C
from .._C import Tensor

__all__ = ["Variable"]


class _VariableMeta(type):
    def __instancecheck__(cls, value) -> bool:
        return isinstance(value, Tensor)


class Variable(metaclass=_VariableMeta):
    """Calls return a leaf that shares the tensor's bytes: gradients do not reach the tensor. All tensors are instances."""

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = False, volatile: bool = False):
        if data is None:
            data = _C.torch.empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        if volatile:
            message = "volatile was removed and now has no effect. Use `with torch.no_grad():` instead."
            warnings.warn(message, stacklevel=2)
        return data.detach().requires_grad_(bool(requires_grad))
