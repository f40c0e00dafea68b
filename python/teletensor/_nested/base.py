"""AnyNested: what nested tensors of both layouts share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _C
from .._C import Tensor
from .._component_tensor import ComponentTensor
from .engine import is_pointwise
from .ragged import NestedInt


def not_implemented(name: str, why: str = "there is no such operator for them") -> NotImplementedError:
    """The error for an operator without support for nested tensors."""
    return NotImplementedError(f"[{name}] expected tensors that are not nested, got a nested tensor: {why}")


class AnyNested(ComponentTensor):
    """A nested tensor: tensors in the engine that hold its elements and sizes. Gradients are those of its elements' tensor.

    Operators reach ``run_engine_call`` by the engine's names; functions that receive sizes reach the methods of the class.
    """

    is_nested = True

    @classmethod
    def _without_handler(cls, name: str, arguments: list, into: list | None) -> Any:
        if is_pointwise(name):
            return cls._handlers["pointwise"]([name, arguments], into)
        raise not_implemented(name)

    @classmethod
    def __torch_function__(cls, func: Callable, _types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        """Calls the class's method for functions that receive sizes; other functions reach run_engine_call()."""
        name = getattr(func, "__name__", "")
        if name in _TAKING_SIZES and args and isinstance(args[0], AnyNested):
            return getattr(type(args[0]), name)(*args, **(kwargs or {}))
        if len(args) > 1 and _has_nested_int(args):
            if name != "layer_norm" or not isinstance(args[0], AnyNested):
                raise RuntimeError(f"[{name}] invalid argument: the size of a ragged dimension is not a number")
            return args[0]._normalized(*args[1:], **(kwargs or {}))
        if name == "embedding_bag" and args and isinstance(args[0], AnyNested):
            return args[0]._bag(func, args[1:], kwargs or {})
        with _C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    def _normalized(self, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
        """layer_norm() over a ragged dimension."""
        raise not_implemented("layer_norm", f"normalizing {normalized_shape} with {weight}, {bias} and {eps} is not implemented")

    def _bag(self, function: Callable, args: tuple, keywords: dict) -> Tensor:
        """embedding_bag() of nested indices: each constituent is a bag."""
        raise not_implemented("embedding_bag")

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        """Refuses operators that are not the engine's."""
        raise not_implemented(str(func))

    def _with(self, elements: Tensor) -> AnyNested:
        """The nested tensor of the same sizes with other elements."""
        raise NotImplementedError

    # -- gradients

    def _with_gradient(self, gradient: Tensor) -> AnyNested:
        return self._with(gradient)

    def _elements_of_gradient(self, gradient: Any) -> Any:
        if not isinstance(gradient, AnyNested):
            raise RuntimeError(f"assigned grad expected to be a nested tensor, got {type(gradient).__name__}")
        return gradient._elements

    @property
    def data(self) -> AnyNested:  # type: ignore[override]
        """The same elements without gradient history."""
        return self._with(self._elements.detach())

    # -- what it is

    @property
    def ndim(self) -> int:  # type: ignore[override]
        """The number of dimensions."""
        return self.dim()

    def nelement(self) -> int:
        """The number of elements."""
        return self.numel()

    def __iter__(self) -> Any:
        return iter(self.unbind())

    def _refuse_values(self, *_args: Any, **_keywords: Any) -> Any:
        raise not_implemented("tolist", "unbind() it, or read its values()")

    tolist = numpy = item = __array__ = __float__ = __int__ = __index__ = _refuse_values  # type: ignore[assignment]

    def untyped_storage(self) -> Any:
        """The bytes of the elements."""
        return self._elements.untyped_storage()

    def data_ptr(self) -> Any:
        """data_ptr() of the elements."""
        return self._elements.data_ptr()


# Functions whose sizes may be those of ragged dimensions, or differ for each constituent. They are methods of the classes.
_TAKING_SIZES = frozenset("view reshape expand unflatten flatten size stride numel broadcast_to to_padded_tensor isreal".split())


def _has_nested_int(values: Any) -> bool:
    return any(isinstance(v, NestedInt) or (isinstance(v, (list, tuple)) and _has_nested_int(v)) for v in values)


def nested_in(values: Any) -> list[AnyNested]:
    """The nested tensors among arguments, also in lists."""
    found: list[AnyNested] = []
    for value in values:
        if isinstance(value, AnyNested):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found.extend(nested_in(value))
    return found
