"""Parameter and Buffer: tensors that modules register."""

from __future__ import annotations

from .. import _C
from .._C import Tensor


class _ParameterType(type(Tensor)):
    """Makes DTensors that are parameters instances of Parameter too."""

    def __instancecheck__(cls, instance) -> bool:
        if super().__instancecheck__(instance):
            return True
        return _C.is_dtensor(instance) and instance.__dict__.get("_parameter_type") is cls


class Parameter(Tensor, metaclass=_ParameterType):
    """A leaf tensor that requires grad. Assigning a Parameter to a Module's attribute registers it.

    A Parameter of a DTensor is a DTensor, and an instance of both classes.
    """

    def __new__(cls, data: Tensor, requires_grad: bool = True):
        if _C.is_dtensor(data):
            self = data.detach()
            self._parameter_type = cls
        else:
            self = Tensor.__new__(cls, data.detach())
        self.requires_grad = requires_grad
        return self

    def __init__(self, *args, **kwargs):
        pass

    def __deepcopy__(self, memo: dict) -> Parameter:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.detach().clone(), self.requires_grad)
        return memo[id(self)]


class Buffer(Tensor, metaclass=_ParameterType):
    """A tensor that a module saves with its state but does not train."""

    def __new__(cls, data: Tensor, *, persistent: bool = True):
        if _C.is_dtensor(data):
            self = data.detach()
            self._parameter_type = cls
        else:
            self = Tensor.__new__(cls, data.detach())
        self.persistent = persistent
        return self

    def __init__(self, *args, **kwargs):
        pass


class UninitializedParameter:
    """The parameter of lazy modules, which are not supported: the constructor raises."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("lazy modules are not supported: pass the sizes to the module's constructor")
