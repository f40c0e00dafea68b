"""torch._foreach_*: an operator applied to each tensor of a list. All calls are sent to the engine together."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any, Callable

from .. import _C
from .._C import Tensor
from .._toplevel import FOREACH_BINARY, FOREACH_UNARY
from . import overloads

_List = Sequence[Tensor]


def _check(name: str, *lists: Any) -> int:
    """The common length of lists of tensors. Raises RuntimeError for an empty list, and for lists of different lengths.
    """
    sizes = [len(values) for values in lists]
    if not sizes[0]:
        raise RuntimeError(f"_foreach_{name}: Tensor list must have at least one tensor.")
    for size in sizes[1:]:
        if size != sizes[0]:
            raise RuntimeError(f"_foreach_{name}: Tensor lists must have the same number of tensors, got {sizes[0]} and {size}")
    return sizes[0]


def _each(name: str, values: Any, count: int) -> list:
    """One value per tensor, from a list of values, a tensor with one value each, or a number or tensor for all."""
    if isinstance(values, (list, tuple)):
        if len(values) != count:
            what = "scalars" if not isinstance(values[0] if values else 0, Tensor) else "tensors"
            expected = f"Tensor list must have same number of elements as {what} list"
            raise RuntimeError(f"_foreach_{name}: {expected}, got {count} and {len(values)}")
        return list(values)
    if isinstance(values, Tensor) and values.dim():
        found = f"{values.dim()} dimensions and {values.numel()} elements"
        raise RuntimeError(f"_foreach_{name}: scalar tensor expected to be 0 dim but it has {found}.")
    return [values] * count


def _named(function: Callable, name: str, doc: str) -> Callable:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _function(name: str) -> Callable:
    return getattr(overloads, name, None) or getattr(_C.torch, name)


def _unary(name: str) -> None:
    run, method = _function(name), getattr(Tensor, f"{name}_")

    def apply(self: _List) -> tuple[Tensor, ...]:
        _check(name, self)
        return tuple(run(t) for t in self)

    def apply_(self: _List) -> _List:
        _check(name, self)
        for t in self:
            method(t)
        return self

    globals()[f"_foreach_{name}"] = _named(apply, f"_foreach_{name}", f"torch.{name} of each tensor.")
    globals()[f"_foreach_{name}_"] = _named(apply_, f"_foreach_{name}_", f"torch.{name} of each tensor, in place.")


for _name in FOREACH_UNARY.split():
    _unary(_name)


def _least(a: Tensor, b: Any) -> Tensor:
    return _C.torch.minimum(a, b) if isinstance(b, Tensor) else _C.torch.clamp_max(a, b)


def _greatest(a: Tensor, b: Any) -> Tensor:
    return _C.torch.maximum(a, b) if isinstance(b, Tensor) else _C.torch.clamp_min(a, b)


_BINARY: dict[str, Callable[[Any, Any], Tensor]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
    "pow": lambda a, b: a**b, "clamp_max": _least, "minimum": _least, "clamp_min": _greatest, "maximum": _greatest,
}  # fmt: skip


def _binary(name: str) -> None:
    run = _BINARY[name]

    def compute(self: Any, other: Any, options: dict) -> Iterable[Tensor]:
        _check_options(name, options)
        lists = [values for values in (self, other) if isinstance(values, (list, tuple)) and values and isinstance(values[0], Tensor)]
        count = _check(name, *(lists or [self]))
        run_one = functools.partial(getattr(_C.torch, name), **options) if options.get("alpha", 1) != 1 else run
        return (run_one(a, b) for a, b in zip(_each(name, self, count), _each(name, other, count)))

    def apply(self: Any, other: Any, **options: Any) -> tuple[Tensor, ...]:
        return tuple(compute(self, other, options))

    def apply_(self: _List, other: Any, **options: Any) -> _List:
        if name == "add" and isinstance(other, Tensor) and options.get("alpha", 1) == 1:
            other = other.clone()  # which PyTorch reads once, too; other operators read it again for each tensor
        return _overwrite_in_order(self, compute(self, other, options), name)

    globals()[f"_foreach_{name}"] = _named(apply, f"_foreach_{name}", f"{name} of each tensor and a number, or a number or tensor each.")
    globals()[f"_foreach_{name}_"] = _named(apply_, f"_foreach_{name}_", f"_foreach_{name}, in place.")


def _check_options(name: str, options: dict) -> None:
    if options.keys() - ({"alpha"} if name in ("add", "sub") else set()):
        raise TypeError(f"_foreach_{name}() got unexpected keyword arguments {sorted(options)}")


def overwrite(target: Tensor, value: Tensor, name: str) -> None:
    """target.copy_(value), if the value's dtype can be cast to the target's."""
    if not _C.can_cast(value.dtype, target.dtype):
        raise RuntimeError(f"result type {value.dtype} can't be cast to the desired output type {target.dtype} (_foreach_{name}_)")
    target.copy_(value)


def _overwrite_in_order(targets: _List, values: Iterable[Tensor], name: str) -> _List:
    """Overwrites each target before the next value is computed, so that tensors with common memory receive all updates."""
    for target, value in zip(targets, values):
        overwrite(target, value, name)
    return targets


for _name in FOREACH_BINARY.split():
    _binary(_name)


def _ternary(name: str) -> None:
    run = _function(name)

    def compute(self: _List, tensor1: _List, tensor2: _List, value: Any) -> Iterable[Tensor]:
        count = _check(name, self, tensor1, tensor2)
        values = value.tolist() if isinstance(value, Tensor) else value
        return (run(a, b, c, value=v) for a, b, c, v in zip(self, tensor1, tensor2, _each(name, values, count)))

    def apply(self: _List, tensor1: _List, tensor2: _List, value: Any = 1) -> tuple[Tensor, ...]:
        return tuple(compute(self, tensor1, tensor2, value))

    def apply_(self: _List, tensor1: _List, tensor2: _List, value: Any = 1) -> _List:
        return _overwrite_in_order(self, compute(self, tensor1, tensor2, value), name)

    doc = f"torch.{name} of each tensor; ``value`` is a number, or a number each."
    globals()[f"_foreach_{name}"] = _named(apply, f"_foreach_{name}", doc)
    globals()[f"_foreach_{name}_"] = _named(apply_, f"_foreach_{name}_", doc.replace("tensor;", "tensor, in place;"))


for _name in ("addcdiv", "addcmul"):
    _ternary(_name)


def _lerp(self: _List, tensors1: _List, weight: Any) -> Iterable[Tensor]:
    weights = _each("lerp", weight, _check("lerp", self, tensors1))
    return (_function("lerp")(a, b, w) for a, b, w in zip(self, tensors1, weights))


def _foreach_lerp(self: _List, tensors1: _List, weight: Any) -> tuple[Tensor, ...]:
    """torch.lerp of pairs of tensors; ``weight`` is a number, or a number or tensor each."""
    return tuple(_lerp(self, tensors1, weight))


def _foreach_lerp_(self: _List, tensors1: _List, weight: Any) -> _List:
    """_foreach_lerp, in place."""
    return _overwrite_in_order(self, _lerp(self, tensors1, weight), "lerp")


def _foreach_norm(self: _List, ord: Any = 2, dtype: Any = None) -> tuple[Tensor, ...]:  # noqa: A002
    """The norm of each tensor's elements, computed in ``dtype``."""
    _check("norm", self)
    return tuple(_C.ops.vector_norm(t if dtype is None else t.to(dtype), float(ord), None, False) for t in self)


def _foreach_powsum(self: _List, ord: Any = 2, dtype: Any = None) -> tuple[Tensor, ...]:  # noqa: A002
    """The sum of each tensor's absolute values to a power, computed in ``dtype``."""
    _check("powsum", self)
    return tuple((t if dtype is None else t.to(dtype)).abs().pow(ord).sum() for t in self)


def _foreach_max(self: _List) -> tuple[Tensor, ...]:
    """The largest element of each tensor."""
    _check("max", self)
    return tuple(t.max() for t in self)


def _foreach_mm(self: _List, mat2: _List) -> tuple[Tensor, ...]:
    """torch.mm of pairs of matrices."""
    _check("mm", self, mat2)
    return tuple(_C.torch.mm(a, b) for a, b in zip(self, mat2))


def _foreach_clone(self: _List) -> tuple[Tensor, ...]:
    """A copy of each tensor."""
    _check("clone", self)
    return tuple(t.clone() for t in self)


def _foreach_copy_(self: _List, src: _List, non_blocking: bool = False) -> _List:
    """Overwrites each tensor with another one."""
    _check("copy", self, src)
    for t, value in zip(self, src):
        t.copy_(value, non_blocking)
    return self


def _foreach_zero_(self: _List) -> _List:
    """Sets all elements to 0."""
    _check("zero", self)
    for t in self:
        t.zero_()
    return self
