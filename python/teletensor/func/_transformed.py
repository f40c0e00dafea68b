"""Transformed: the tensors that a transform passes to its function, and how operator calls reach the innermost transform."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any

from .. import _C
from .._C import Tensor
from .._library.dispatch import engine_call
from .._library.engine_operators import operator_named
from .._library.handlers import flat
from .._library.loaded import LoadedOverload
from .._library.operators import OpOverload
from .._transforms import running
from ..utils._python_dispatch import TorchDispatchMode

_SAVE_NOTHING = frozenset(("assign", "add", "sub"))  # operators that keep nothing of their first argument for gradients


class Level:
    """One transform in progress. Levels are numbered in the order in which they begin (_transforms.next_number)."""

    number: int

    def compute(self, name: str, arguments: list, into: list | None) -> list:
        """The results of a call of the engine's operator `name`; `into` are the tensors that receive them."""
        raise NotImplementedError

    def apply_function(self, function: type, args: tuple) -> Any:
        """Function.apply() of which an argument belongs to this transform, and none to one that began later."""
        raise NotImplementedError

    def gradients(self, outputs, grad_outputs, inputs, retain_graph: bool, create_graph: bool, allow_unused: bool) -> list:
        """autograd.grad() of which an output, a gradient or an input belongs to this transform."""
        raise NotImplementedError

    def backward(self, outputs, grad_outputs, retain_graph: bool, create_graph: bool, inputs: list) -> None:
        """backward() of which an output, a gradient or an input belongs to this transform."""
        raise NotImplementedError


class Transformed(Tensor):
    """A tensor without values of its own in the engine. Its operators are computed by its transform."""

    _value: Tensor  # the tensor inside, of a transform around this one, or without a transform
    _level: Level

    __torch_function__ = _C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        """Passes an operator to the innermost transform."""
        return dispatch(func, args, kwargs or {})

    @staticmethod
    def run_engine_call(name: str, arguments: list, into: list | None) -> Any:
        """The same for an operator of the engine, by its own name."""
        return compute(name, arguments, into)

    @property
    def requires_grad(self) -> bool:
        return self._value.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._value.requires_grad = value

    def requires_grad_(self, requires_grad: bool = True) -> Transformed:
        self._value.requires_grad_(requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:
        return self._value.is_leaf

    @property
    def grad_fn(self):
        return self._value.grad_fn

    @property
    def _version(self) -> int:
        return self._value._version

    @property
    def data(self) -> Tensor:
        return self.detach()

    @staticmethod
    def apply_function(function: type, args: tuple) -> Any:
        """Function.apply() with such arguments, as the innermost transform computes it."""
        return required(args).apply_function(function, args)

    @staticmethod
    def run_backward(outputs, grad_outputs, retain_graph: bool, create_graph: bool, inputs: list) -> None:
        """backward() with such tensors, as the innermost transform computes it."""
        required([*outputs, *grad_outputs, *inputs]).backward(outputs, grad_outputs, retain_graph, create_graph, inputs)

    @staticmethod
    def run_grad(outputs, grad_outputs, inputs, retain_graph: bool, create_graph: bool, allow_unused: bool) -> list:
        """autograd.grad() with such tensors."""
        return run_grad(outputs, grad_outputs, inputs, retain_graph, create_graph, allow_unused)

    def with_value(self, change: Callable[[Tensor], Tensor]) -> Transformed:
        """The same tensor of this transform, with `change` applied to the tensor inside."""
        raise NotImplementedError

    def as_leaf(self) -> Transformed:
        """See _transforms.leaf()."""
        raise NotImplementedError

    def as_untaped(self) -> Transformed:
        """See _transforms.untaped()."""
        raise NotImplementedError

    def __deepcopy__(self, memo: dict) -> Tensor:
        return memo.setdefault(id(self), self.detach().clone())


def _view_in_place(name: str) -> Callable:
    """A method that gives the object another view, such as transpose_()."""

    def view(self: Transformed, *args: Any, **kwargs: Any) -> Transformed:
        if self.requires_grad and self.is_leaf and _C.is_grad_enabled():
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        made = getattr(self, name)(*args, **kwargs)
        _C._set_wrapper(self, made)
        self.__dict__.update(made.__dict__)
        return self

    return view


for _name in ("squeeze", "unsqueeze", "transpose", "t", "swapaxes", "swapdims"):
    setattr(Transformed, f"{_name}_", _view_in_place(_name))


def with_copies(name: str, arguments: list, into: list, requires_grad: Callable[[Tensor], bool]) -> list:
    """The arguments of a write whose gradient may need the values that are replaced: copies of these."""
    if name in _SAVE_NOTHING or not _C.is_grad_enabled():
        return arguments
    if not any(isinstance(t, Tensor) and requires_grad(t) for t in flat(arguments)):
        return arguments
    targets = {id(t) for t in into}
    return [a.clone() if id(a) in targets else a for a in arguments]


# Methods that read a tensor's values, or expose its memory.
VALUE_METHODS = (
    "item", "tolist", "numpy", "__bool__", "__int__", "__float__", "__index__", "__complex__", "__array__", "__contains__",
    "untyped_storage", "data_ptr",
)  # fmt: skip


def read_inside(cls: type) -> None:
    """Lets a class's tensors have the values of the tensors inside them."""

    def method(name: str) -> Callable:
        return lambda self, *args, **kwargs: getattr(self._value, name)(*args, **kwargs)

    for name in VALUE_METHODS:
        setattr(cls, name, method(name))


def innermost(values: Iterable[Any]) -> Level | None:
    """The transform that began last of those to which the tensors belong."""
    found = None
    for value in values:
        for tensor in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(tensor, Transformed) and (found is None or tensor._level.number > found.number):
                found = tensor._level
    return found


def required(values: Iterable[Any]) -> Level:
    level = innermost(values)
    assert level is not None
    return level


def root(tensor: Tensor) -> Tensor:
    """The tensor in the engine inside those of transforms."""
    while isinstance(tensor, Transformed):
        tensor = tensor._value
    return tensor


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The tensor inside one that a transform passes to its function; other tensors as they are.

    Args:
        recurse: whether to remove the tensors of all nested transforms, or of the innermost one only.
    """
    if not isinstance(recurse, bool):
        raise TypeError(f"debug_unwrap: expected recurse to be a bool, got {type(recurse).__name__}")
    if not isinstance(tensor, Transformed):
        return tensor
    return root(tensor) if recurse else tensor._value


def run_grad(outputs, grad_outputs, inputs, retain_graph: bool, create_graph: bool, allow_unused: bool) -> list:
    """autograd.grad(), as the innermost transform computes it."""
    level = innermost([*outputs, *grad_outputs, *inputs])
    run = _C.grad if level is None else level.gradients
    return run(outputs, grad_outputs, inputs, retain_graph, create_graph, allow_unused)


class _InnerMode(TorchDispatchMode):
    """Passes the calls of a transform's function to it, before the modes around it receive the operators that it calls."""

    runs_backward = True  # as if there were no mode

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return dispatch(func, args, kwargs or {}) if any(issubclass(t, Transformed) for t in types) else func(*args, **(kwargs or {}))


class NewTensors(_InnerMode):
    """The same, which passes each tensor that the function makes of no other one, or that is a clone, to `enter`, and returns its
    result."""

    def __init__(self, enter: Callable[[Tensor], Tensor]):
        super().__init__()
        self.enter = enter

    def run_engine_call(self, name: str, arguments: list, into: list | None) -> Any:
        tensors = [t for t in flat((*arguments, *(into or ()))) if isinstance(t, Tensor)]
        outer, running.is_computing = running.is_computing, True
        try:
            if any(isinstance(t, Transformed) for t in tensors):
                return compute(name, arguments, into)
            made = _returned(name, operator_named(name).call(arguments, into), into)
            return self._entered(made, [] if name == "clone" and into is None and not outer else tensors)
        finally:
            running.is_computing = outer

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        outer, running.is_computing = running.is_computing, True
        try:
            return self._entered(super().__torch_dispatch__(func, types, args, kwargs), list(types))
        finally:
            running.is_computing = outer

    def _entered(self, result: Any, given: list) -> Any:
        return self.enter(result) if not given and isinstance(result, Tensor) else result


def inside_modes() -> Any:
    """A context for a transform's function, in which modes from outside receive the operators that the transform calls."""
    return _InnerMode() if _C._len_torch_dispatch_stack() else contextlib.nullcontext()


def dispatch(func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Computes a call that a handler received, by the innermost transform of its tensors."""
    call = engine_call(args)
    if call is None:  # an operator whose kernel is a Python function
        by_rule = getattr(innermost([*args, *kwargs.values()]), "apply_operator", None)
        if by_rule is not None and getattr(func, "vmap_rule", None) is not None:
            return by_rule(func, args, kwargs)
        return func.run(*func._schema.bind(args, kwargs)) if type(func) in (OpOverload, LoadedOverload) else func(*args, **kwargs)
    return compute(*call)


def compute(name: str, arguments: list, into: list | None) -> Any:
    """Computes a call of an operator of the engine. Returns its result, or a tuple."""
    return _returned(name, required([*arguments, *(into or ())]).compute(name, arguments, into), into)


def _returned(name: str, results: list, into: list | None) -> Any:
    if into is not None:
        return into[0] if len(into) == 1 else tuple(into)
    count = operator_named(name).num_outputs
    return None if count == 0 else results[0] if count == 1 else tuple(results)
