"""ComponentTensor: what tensors of layouts that are composed of tensors in the engine share (sparse and nested ones)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _C
from ._C import Tensor
from ._composed_operators import compose


class ComponentTensor(Tensor):
    """A tensor whose elements a component holds, beside others with indices or sizes. Gradients are those of the elements.

    Operators reach ``run_engine_call`` by the engine's names. A layout's class has ``_handlers``, and may override the
    methods that convert gradients.
    """

    _has_own_layout = True
    _elements: Tensor  # the component with all elements, which has the gradient history
    _handlers: dict[str, Callable[[list, list | None], Any]]  # by the name of the engine's operator: (arguments, into) -> result

    @classmethod
    def run_engine_call(cls, name: str, arguments: list, into: list | None) -> Any:
        """Computes an operator of the engine of which an argument is of this class."""
        handler = cls._handlers.get(name)
        if handler is not None:
            return handler(arguments, into)
        result = compose(name, arguments, into, NotImplementedError)
        return cls._without_handler(name, arguments, into) if result is NotImplemented else result

    @classmethod
    def _without_handler(cls, name: str, arguments: list, into: list | None) -> Any:
        """Computes an operator that has no handler, or raises NotImplementedError."""
        raise NotImplementedError(f"[{name}] is not implemented for {cls.__name__} with {len(arguments)} arguments, out={into}")

    def _with_gradient(self, gradient: Tensor) -> Any:
        """The gradient of this tensor, in its layout, from that of its elements."""
        raise NotImplementedError

    def _elements_of_gradient(self, gradient: Any) -> Any:
        """The gradient of the elements, from that of this tensor; None for None."""
        return elements_of(gradient)

    @classmethod
    def _elements_of_gradients(cls, roots: list, gradients: list) -> list:
        """The gradients of the roots' elements, where a backward pass starts."""
        return [elements_of(g) for g in gradients]

    # -- gradients: those of the elements

    @property
    def requires_grad(self) -> bool:  # type: ignore[override]
        """Whether gradients are recorded for the elements."""
        return self._elements.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._elements.requires_grad = value

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Sets ``requires_grad``, and returns the tensor."""
        self._elements.requires_grad_(requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:  # type: ignore[override]
        """Whether no recorded operation computed the elements."""
        return self._elements.is_leaf

    @property
    def grad_fn(self) -> Any:  # type: ignore[override]
        """The node of the graph that computed the elements, or None."""
        return self._elements.grad_fn

    @property
    def output_nr(self) -> int:  # type: ignore[override]
        """The number of the result of ``grad_fn``."""
        return self._elements.output_nr

    @property
    def _version(self) -> int:  # type: ignore[override]
        return self._elements._version

    @property
    def grad(self) -> Any:  # type: ignore[override]
        """The gradient, of the same layout; None before a backward pass."""
        found = self._elements.grad
        return None if found is None else self._with_gradient(found)

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(f"assigned grad expected to be a Tensor or None but got {type(value).__name__}")
        self._elements.grad = None if value is None else self._elements_of_gradient(value)

    @grad.deleter
    def grad(self) -> None:
        self._elements.grad = None

    def detach_(self) -> Any:
        """Detaches the tensor from its graph, in place."""
        self._elements = self._elements.detach()
        return self

    def retain_grad(self) -> None:
        """Keeps the gradient of a tensor that is no leaf."""
        self._elements.retain_grad()

    @property
    def retains_grad(self) -> bool:  # type: ignore[override]
        """Whether retain_grad() was called."""
        return self._elements.retains_grad

    def register_hook(self, hook: Callable) -> Any:
        """Calls ``hook(grad)`` with the gradient in this layout; a result other than None replaces it."""

        def of_elements(gradient: Tensor) -> Tensor | None:
            changed = hook(self._with_gradient(gradient))
            return None if changed is None else self._elements_of_gradient(changed)

        return self._elements.register_hook(of_elements)

    @classmethod
    def run_backward(cls, roots: list, gradients: list, retain_graph: bool, create_graph: bool, inputs: list) -> None:
        """backward() of which a root or an input is of this class: that of the elements."""
        given = cls._elements_of_gradients(roots, gradients)
        _C.backward([elements_of(t) for t in roots], given, retain_graph, create_graph, [elements_of(t) for t in inputs])

    @classmethod
    def run_grad(
        cls, outputs: list, gradients: list, inputs: list, retain_graph: bool, create_graph: bool, allow_unused: bool
    ) -> list:
        """autograd.grad() with such tensors: the gradients of the inputs, each in its layout."""
        given = cls._elements_of_gradients(outputs, gradients)
        wanted = [elements_of(t) for t in inputs]
        found = _C.grad([elements_of(t) for t in outputs], given, wanted, retain_graph, create_graph, allow_unused)
        return [
            t._with_gradient(g) if g is not None and isinstance(t, ComponentTensor) else g
            for t, g in zip(inputs, found, strict=True)
        ]

    # -- conversions to Python

    def __bool__(self) -> bool:
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")

    def __deepcopy__(self, memo: dict) -> Any:
        if id(self) not in memo:
            if not self.is_leaf:
                raise RuntimeError(
                    "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment."
                )
            copied = memo[id(self)] = self.detach().clone()
            copied.requires_grad_(self.requires_grad)
            if self._elements.grad is not None:
                copied._elements.grad = self._elements.grad.clone()
        return memo[id(self)]


def elements_of(value: Any) -> Any:
    """The elements of a composed tensor, with their history; other values unchanged."""
    return value._elements if isinstance(value, ComponentTensor) else value
