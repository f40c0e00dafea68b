"""Parameter and Buffer: tensors that modules register."""

from __future__ import annotations

from .._C import Tensor


class Parameter(Tensor):
    """A leaf tensor that requires grad. Assigning a Parameter to a Module's attribute registers it."""

    def __new__(cls, data: Tensor, requires_grad: bool = True):
        self = Tensor.__new__(cls, data.detach())
        self.requires_grad = requires_grad
        return self

    def __init__(self, *args, **kwargs):
        pass

    def __deepcopy__(self, memo: dict) -> Parameter:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.detach().clone(), self.requires_grad)
        return memo[id(self)]


class Buffer(Tensor):
    """A tensor that a module saves with its state but does not train."""

    def __new__(cls, data: Tensor, *, persistent: bool = True):
        self = Tensor.__new__(cls, data.detach())
        self.persistent = persistent
        return self

    def __init__(self, *args, **kwargs):
        pass


class UninitializedParameter:
    """The parameter of lazy modules, which are not supported: the constructor raises."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("lazy modules are not supported: pass the sizes to the module's constructor")
