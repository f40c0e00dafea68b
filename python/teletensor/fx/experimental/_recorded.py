"""RecordedTensor: what a function sees of a tensor while its operators are recorded as nodes of an fx graph."""

from __future__ import annotations

import functools
import operator
from typing import Any

from ... import _C
from ..._C import Tensor
from ..node import Node
from ._sizes import RecordedSize
from .symbolic_shapes import GuardOnDataDependentSymNode


class GradientsRequestedError(NotImplementedError):
    """The function calls autograd.grad() or backward(), whose operators run in the engine."""


def _refuse_values(name: str):
    def refuse(self: RecordedTensor, *args: Any, **kwargs: Any):
        raise GuardOnDataDependentSymNode(
            f"Could not guard on data-dependent expression: {name} reads the value of a tensor ({self._node}) whose computation is "
            "recorded, so that a branch or a number would depend on data. Use torch.cond() for branches, or torch.where()"
        )

    return refuse


class RecordedTensor(Tensor):
    """A tensor of a recording: its node in the graph, and a tensor with its values or, in fake mode, without values."""

    _value: Tensor
    _node: Node
    _recording: Any

    __torch_function__ = _C._disabled_torch_function_impl

    @staticmethod
    def wrap(value: Tensor, node: Node, recording: Any, device: Any) -> RecordedTensor:
        """A recorded tensor with the sizes, strides and dtype of `value`, which is on `device` in the program."""
        made = _C._make_wrapper(RecordedTensor, tuple(value.shape), list(value.stride()), value.storage_offset(), value.dtype, device)
        made._value, made._node, made._recording = value, node, recording
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        raise RuntimeError(f"[{func}] received a tensor of a recording outside of it, or within a mode that suspends it")

    def _sizes(self) -> list:
        plain = Tensor.size(self)
        recording = self._recording
        return [RecordedSize.of(n, ("size", self._node, i), recording.log) for i, n in enumerate(plain)] if recording.log else list(plain)

    @property
    def shape(self) -> Any:
        return _C.Size(self._sizes()) if self._recording.log is None else RecordedShape(self._sizes())

    def size(self, dim: int | None = None) -> Any:
        if dim is None:
            return self.shape
        plain = Tensor.size(self, dim)
        if self._recording.log is None:
            return plain
        return RecordedSize.of(plain, ("size", self._node, dim % self.dim()), self._recording.log)

    def numel(self) -> int:
        if self._recording.log is None:
            return Tensor.numel(self)
        return self.shape.numel()

    nelement = numel

    def __len__(self) -> int:
        if self.dim() == 0:
            raise TypeError("len() of a 0-d tensor")
        return int(self.size(0))

    @property
    def requires_grad(self) -> bool:
        return self._value.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> RecordedTensor:
        if requires_grad != self._value.requires_grad:
            raise GradientsRequestedError("[requires_grad_] a recording by operators does not change whether a tensor requires grad")
        return self

    @property
    def is_leaf(self) -> bool:
        return self._value.is_leaf

    @property
    def grad_fn(self) -> Any:
        return self._value.grad_fn

    @property
    def grad(self) -> None:
        return None

    @property
    def data(self) -> Tensor:
        return self.detach()

    @staticmethod
    def run_backward(*_args: Any) -> None:
        """A backward pass within a recording."""
        raise GradientsRequestedError("[backward] the operators of a backward pass are not recorded one by one")

    @staticmethod
    def run_grad(*_args: Any) -> None:
        """autograd.grad() within a recording."""
        raise GradientsRequestedError("[grad] the operators of a backward pass are not recorded one by one")

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"RecordedTensor({self._node}, size={tuple(Tensor.size(self))}, dtype={self.dtype})"

    def __copy__(self) -> RecordedTensor:
        return RecordedTensor.wrap(self._value, self._node, self._recording, self.device)

    def __deepcopy__(self, memo: dict) -> Tensor:
        return memo.setdefault(id(self), self.detach().clone())


class RecordedShape(tuple):
    """The sizes of a recorded tensor, with torch.Size's methods."""

    def numel(self) -> int:
        """The product of the sizes."""
        return functools.reduce(operator.mul, self) if self else 1

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return RecordedShape(found) if isinstance(key, slice) else found

    def __repr__(self) -> str:
        return f"torch.Size({[int.__add__(n, 0) for n in self]})"


for _name in (
    "item", "tolist", "numpy", "__bool__", "__int__", "__float__", "__index__", "__complex__", "__array__", "__contains__",
    "untyped_storage", "data_ptr",
):  # fmt: skip
    setattr(RecordedTensor, _name, _refuse_values(_name))
