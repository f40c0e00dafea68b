"""torch.foreach: a function of torch applied to each tensor of a list or tuple. All calls are sent to the engine together.

Functions return a tuple of results; those whose names end with ``_`` write in place and return the list or tuple that they received.
An operand is a number for all tensors, or a list with a number or a tensor for each; a zero-dim tensor, too, where PyTorch accepts
one. Lists must have tensors, and equally many; otherwise RuntimeError is raised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._C import Tensor
from ._ops import foreach as _lists
from ._overridable import wrap_functions as _wrap_functions
from ._toplevel import FOREACH_BINARY, FOREACH_UNARY

_WITH_ALPHA = frozenset(("add", "sub"))


def _require_tensors(name: str, values: Any) -> None:
    if not isinstance(values, (list, tuple)) or not all(isinstance(v, Tensor) for v in values):
        raise TypeError(f"[foreach.{name}] expected a list or tuple of tensors, got {type(values).__name__}")


def _unary(name: str, run: Callable) -> Callable:
    def apply(inputs, /):
        _require_tensors(name, inputs)
        return run(inputs)

    return apply


def _binary(name: str, run: Callable) -> Callable:
    def apply(inputs, other, /):
        if not (name == "pow" and isinstance(inputs, (bool, int, float, complex))):  # a number to the power of each tensor
            _require_tensors(name, inputs)
        return run(inputs, other)

    return apply


def _with_alpha(name: str, run: Callable) -> Callable:
    def apply(inputs, other, /, *, alpha=None):
        _require_tensors(name, inputs)
        if alpha is None:
            return run(inputs, other)
        if not isinstance(other, Tensor):
            _require_tensors(name, other)
        return run(inputs, other, alpha=alpha)

    return apply


def _ternary(name: str, run: Callable) -> Callable:
    def apply(inputs, tensor1, tensor2, /, *, value=1):
        for tensors in (inputs, tensor1, tensor2):
            _require_tensors(name, tensors)
        return run(inputs, tensor1, tensor2, value)

    return apply


def _interpolated(name: str, run: Callable) -> Callable:
    def apply(inputs, end, weight, /):
        for tensors in (inputs, end):
            _require_tensors(name, tensors)
        return run(inputs, end, weight)

    return apply


def _define(name: str, kind: Callable[[str, Callable], Callable], in_place: bool) -> None:
    public = f"{name}_" if in_place else name
    function = kind(public, getattr(_lists, f"_foreach_{public}"))
    function.__name__ = function.__qualname__ = public
    function.__doc__ = f"torch.{name} of each tensor of ``inputs``{', in place' if in_place else ''}."
    globals()[public] = function
    __all__.append(public)


__all__ = ["clone", "copy_", "max", "mm", "norm", "zero_"]
_KINDS = (
    (FOREACH_UNARY, _unary), ("add sub", _with_alpha), ("addcdiv addcmul", _ternary), ("lerp", _interpolated),
    (" ".join(n for n in FOREACH_BINARY.split() if n not in _WITH_ALPHA), _binary),
)  # fmt: skip
for _names, _kind in _KINDS:
    for _name in _names.split():
        _define(_name, _kind, False)
        _define(_name, _kind, True)


def clone(inputs, /, *, memory_format=None):
    """A copy of each tensor, by default with its strides."""
    _require_tensors("clone", inputs)
    return _lists._foreach_clone(inputs) if memory_format is None else tuple(t.clone(memory_format=memory_format) for t in inputs)


def copy_(inputs, src, /, *, non_blocking=False):
    """Writes each tensor of ``src`` to the tensor of ``inputs`` at its place."""
    _require_tensors("copy_", inputs)
    _require_tensors("copy_", src)
    return _lists._foreach_copy_(inputs, src, non_blocking)


def max(inputs, /):  # noqa: A001 - PyTorch's name
    """The largest element of each tensor."""
    _require_tensors("max", inputs)
    return _lists._foreach_max(inputs)


def mm(inputs, mat2, /):
    """torch.mm of each pair of matrices."""
    _require_tensors("mm", inputs)
    _require_tensors("mm", mat2)
    return _lists._foreach_mm(inputs, mat2)


def norm(inputs, /, *, ord=2, dtype=None):  # noqa: A002 - PyTorch's name
    """The norm of each tensor's elements, computed in ``dtype``, by default its own."""
    _require_tensors("norm", inputs)
    return _lists._foreach_norm(inputs, ord, dtype)


def zero_(inputs, /):
    """Sets all elements to 0."""
    _require_tensors("zero_", inputs)
    return _lists._foreach_zero_(inputs)


__all__.sort()
_wrap_functions(globals())
