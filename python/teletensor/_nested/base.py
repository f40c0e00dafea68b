"""AnyNested: what nested tensors of both layouts share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _C
from .._C import Tensor
from .engine import is_pointwise
from .ragged import NestedInt


def not_implemented(name: str, why: str = "there is no such operator for them") -> NotImplementedError:
    """The error for an operator without support for nested tensors."""
    return NotImplementedError(f"[{name}] expected tensors that are not nested, got a nested tensor: {why}")


class AnyNested(Tensor):
    """A nested tensor: tensors in the engine that hold its elements and sizes. Gradients are those of its elements' tensor.

    Operators reach ``run_engine_call`` by the engine's names; functions that receive sizes reach the methods of the class.
    """

    is_nested = True
    _elements: Tensor  # the tensor with all elements, which has the gradient history
    _handlers: dict[str, Callable[[list, list | None], Any]]  # of the layout, by the name of the engine's operator

    @classmethod
    def run_engine_call(cls, name: str, arguments: list, into: list | None) -> Any:
        """Computes an operator of the engine of which an argument is nested."""
        if name in cls._handlers:
            return cls._handlers[name](arguments, into)
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

    @property
    def requires_grad(self) -> bool:  # type: ignore[override]
        """Whether gradients are recorded for the elements."""
        return self._elements.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._elements.requires_grad = value

    def requires_grad_(self, requires_grad: bool = True) -> AnyNested:
        """Sets ``requires_grad``."""
        self._elements.requires_grad_(requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:  # type: ignore[override]
        """Whether the elements are a leaf of the graph."""
        return self._elements.is_leaf

    @property
    def grad_fn(self) -> Any:  # type: ignore[override]
        """The elements' ``grad_fn``."""
        return self._elements.grad_fn

    @property
    def grad(self) -> AnyNested | None:  # type: ignore[override]
        """The gradient, a nested tensor of the same sizes."""
        grad = self._elements.grad
        return None if grad is None else self._with(grad)

    @grad.setter
    def grad(self, value: AnyNested | None) -> None:
        self._elements.grad = None if value is None else value._elements

    def retain_grad(self) -> None:
        """Keeps the gradient of a tensor that is no leaf."""
        self._elements.retain_grad()

    @property
    def retains_grad(self) -> bool:  # type: ignore[override]
        """Whether the gradient of a tensor that is no leaf is kept."""
        return self._elements.retains_grad

    def register_hook(self, hook: Callable) -> Any:
        """Calls ``hook`` with the gradient, a nested tensor; it may return another one."""

        def on_elements(gradient: Tensor) -> Tensor | None:
            result = hook(self._with(gradient))
            return result._elements if isinstance(result, AnyNested) else result

        return self._elements.register_hook(on_elements)

    @property
    def _version(self) -> int:  # type: ignore[override]
        return self._elements._version

    @property
    def data(self) -> AnyNested:  # type: ignore[override]
        """The same elements without gradient history."""
        return self._with(self._elements.detach())

    @staticmethod
    def run_backward(roots: list, gradients: list, retain_graph: bool, create_graph: bool, inputs: list) -> None:
        """backward() from nested tensors, or into them."""
        given = [elements_of(g) for g in gradients]
        _C.backward([elements_of(t) for t in roots], given, retain_graph, create_graph, [elements_of(t) for t in inputs])

    @staticmethod
    def run_grad(
        outputs: list, gradients: list, inputs: list, retain_graph: bool, create_graph: bool, allow_unused: bool
    ) -> list:
        """Returns the gradients of nested tensors, or with respect to them."""
        given = [elements_of(g) for g in gradients]
        wanted = [elements_of(t) for t in inputs]
        found = _C.grad([elements_of(t) for t in outputs], given, wanted, retain_graph, create_graph, allow_unused)
        return [t._with(g) if isinstance(t, AnyNested) and g is not None else g for t, g in zip(inputs, found, strict=True)]

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

    def __bool__(self) -> bool:
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")

    def _refuse_values(self, *_args: Any, **_keywords: Any) -> Any:
        raise not_implemented("tolist", "unbind() it, or read its values()")

    tolist = numpy = item = __array__ = __float__ = __int__ = __index__ = _refuse_values  # type: ignore[assignment]

    def untyped_storage(self) -> Any:
        """The bytes of the elements."""
        return self._elements.untyped_storage()

    def data_ptr(self) -> Any:
        """data_ptr() of the elements."""
        return self._elements.data_ptr()

    def __deepcopy__(self, memo: dict) -> AnyNested:
        if id(self) not in memo:
            if not self.is_leaf:
                raise RuntimeError("Only Tensors created explicitly by the user support the deepcopy protocol at the moment")
            copied = self._with(self._elements.detach().clone())
            memo[id(self)] = copied.requires_grad_(self.requires_grad)
        return memo[id(self)]


# Functions whose sizes may be those of ragged dimensions, or differ for each constituent. They are methods of the classes.
_TAKING_SIZES = frozenset("view reshape expand unflatten flatten size stride numel broadcast_to to_padded_tensor isreal".split())


def _has_nested_int(values: Any) -> bool:
    return any(isinstance(v, NestedInt) or (isinstance(v, (list, tuple)) and _has_nested_int(v)) for v in values)


def elements_of(value: Any) -> Any:
    """The elements of a nested tensor; other values unchanged."""
    return value._elements if isinstance(value, AnyNested) else value


def nested_in(values: Any) -> list[AnyNested]:
    """The nested tensors among arguments, also in lists."""
    found: list[AnyNested] = []
    for value in values:
        if isinstance(value, AnyNested):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found.extend(nested_in(value))
    return found
