"""Array: a Tensor whose operators, indexing and attributes follow the array API standard.

A Tensor follows PyTorch: ``size()`` is a method, zero-dim tensors have less weight in dtype promotion, and slices have
positive steps. Converting a Tensor to an Array keeps its handle and gradients. Every function of teletensor accepts an
Array, because it is a Tensor.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any, Callable

from .. import _C
from .._C import Tensor
from . import _indexing

__all__ = ["Array", "as_array_function", "as_array_functions", "to_tensor"]


class Array(Tensor):
    """A Tensor that follows the array API standard; the module _operators adds the operators."""

    __module__ = "teletensor.array_api"
    __torch_function__ = _C._disabled_torch_function_impl

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.numel()

    @property
    def T(self) -> Array:
        """The transpose of a matrix."""
        if self.ndim != 2:
            raise ValueError(f"x.T requires x to have 2 dimensions, got {self.ndim}: use x.mT or permute_dims()")
        return self.mT

    @property
    def mT(self) -> Array:
        """The array with its last two dimensions swapped."""
        if self.ndim < 2:
            raise ValueError(f"x.mT requires x to have at least 2 dimensions, got {self.ndim}")
        return Array(to_tensor(self).transpose(-2, -1))

    def to_device(self, device: Any, /, *, stream: Any = None) -> Array:
        """Returns the array on the device; copies only if it is on another device."""
        if stream is not None:
            raise ValueError("[to_device] expected stream to be None: the engine manages its streams")
        return Array(to_tensor(self).to(_C.device(device)))

    def __getitem__(self, key: Any) -> Array:
        return Array(_indexing.get_item(to_tensor(self), key))

    def __setitem__(self, key: Any, value: Any) -> None:
        _indexing.set_item(to_tensor(self), key, value)

    def __iter__(self):
        return (Array(part) for part in Tensor.__iter__(to_tensor(self)))


def to_tensor(x: Any) -> Any:
    """Converts an Array to a Tensor; returns other values unchanged."""
    return Tensor(x) if type(x) is Array else x


def _to_tensors(x: Any) -> Any:
    return type(x)(map(to_tensor, x)) if type(x) in (tuple, list) else to_tensor(x)


def _to_arrays(x: Any) -> Any:
    if type(x) is Tensor:
        return Array(x)
    if type(x) in (tuple, list):
        return type(x)(map(_to_arrays, x))
    if isinstance(x, tuple) and hasattr(x, "_fields"):  # a named tuple
        return type(x)(*map(_to_arrays, x))
    return x


def as_array_function(function: Callable) -> Callable:
    """Wraps a function on Tensors so that it accepts and returns Arrays."""

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        return _to_arrays(function(*map(_to_tensors, args), **{k: _to_tensors(v) for k, v in options.items()}))

    return call


def as_array_functions(module: ModuleType) -> dict[str, Any]:
    """The public names of a module: functions wrapped by as_array_function, other values unchanged."""
    names = {name: getattr(module, name) for name in module.__all__}
    return {name: as_array_function(x) if callable(x) and not isinstance(x, type) else x for name, x in names.items()}
