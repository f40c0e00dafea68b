"""Parameter: a tensor that a module counts as its own."""

from __future__ import annotations

from .._C import Tensor


class Parameter(Tensor):
    """A leaf that requires grad, registered by the Module it is assigned to."""

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
    """Of lazy modules, which are not here: making one says so."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("lazy modules are not supported: give the sizes when the module is made")
