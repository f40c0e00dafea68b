"""Further ways to call operators that PyTorch accepts: older orders of arguments, other names of parameters.

The parser of operators calls ``other_spelling`` if no operator of a name accepts the arguments.
"""

from __future__ import annotations

import warnings
from typing import Any, Callable

from .. import _C
from .._C import Tensor
from .._declarations import OLDER_ORDERS
from .._integers import is_int
from .._layouts import layout, strided
from .._options import check_flags

# Older orders of arguments, by function. PyTorch warns that orders with a number before a tensor are deprecated.
# `memory_format` is a keyword of the parser, and subtract() has another order than sub(), whose other name it is:
# declarations contain neither.
ORDERS = OLDER_ORDERS | {"contiguous": ("input memory_format",), "subtract": ("input other alpha",)}
NUMBERS = ("alpha", "beta", "value")  # parameters that are not tensors, in the deprecated orders
_OF_ANY_KIND = ("memory_format", "other", "dim", "dtype", "start", "length")
# Other names of parameters, by function.
RENAMED: dict[str, dict[str, str]] = {
    "swapaxes": {"axis0": "dim0", "axis1": "dim1"}, "split": {"split_size": "split_size_or_sections"},
}  # fmt: skip


def _ordered(names: list[str], args: tuple, kwargs: dict) -> dict[str, Any] | None:
    """Binds arguments to names in an order; None if they do not fit."""
    bound = dict(zip(names, args))
    if len(args) > len(names) or set(bound) & set(kwargs) or not set(names) <= {*bound, *kwargs}:
        return None
    bound.update(kwargs)
    numbers_fit = all(isinstance(bound[n], Tensor) != (n in NUMBERS) for n in names if n not in _OF_ANY_KIND)
    return bound if numbers_fit else None


def _ints(args: tuple) -> bool:
    return len(args) > 1 and all(is_int(a) for a in args[1:])


def _variadic(call: Callable, args: tuple, kwargs: dict):
    """x.squeeze(0, 1): ints instead of a tuple."""
    return call(args[0], tuple(args[1:]), **kwargs) if _ints(args) else NotImplemented


def _expand(call: Callable, args: tuple, kwargs: dict):
    if "implicit" not in kwargs:
        return NotImplemented
    check_flags("expand", implicit=kwargs.pop("implicit"))  # set by PyTorch's own passes; does not change the result
    return call(*args, **kwargs)


def _nan_to_num(call: Callable, args: tuple, kwargs: dict):
    """``nan=None`` means 0."""
    if len(args) > 1 and args[1] is None:
        return call(args[0], 0.0, *args[2:], **kwargs)
    if "nan" in kwargs and kwargs["nan"] is None:
        return call(*args, **{**kwargs, "nan": 0.0})
    return NotImplemented


def _fake_quantize(_call: Callable, args: tuple, kwargs: dict):
    """``scale`` and ``zero_point`` may be tensors of one element, which are not read."""
    names = ["input", "scale", "zero_point", "quant_min", "quant_max"]
    bound = dict(zip(names, args)) | kwargs
    if set(bound) != set(names) or not any(isinstance(bound[n], Tensor) for n in names[1:3]):
        return NotImplemented
    if bound["quant_min"] > bound["quant_max"]:
        raise RuntimeError("`quant_min` should be less than or equal to `quant_max`.")
    for name in names[1:3]:
        bound[name] = bound[name].detach().reshape([]) if isinstance(bound[name], Tensor) else bound[name]
    return _C.ops.fake_quantize_affine(*(bound[n] for n in names))


CALLS: dict[str, Callable] = {
    "broadcast_to": _variadic, "count_nonzero": _variadic, "squeeze": _variadic, "expand": _expand, "nan_to_num": _nan_to_num,
    "nan_to_num_": _nan_to_num, "fake_quantize_per_tensor_affine": _fake_quantize,
}  # fmt: skip


# For tools that read signatures: the parameters that the functions of CALLS add, and the int parameters that also
# accept a tensor, whose value the parser reads. Methods omit `input`.
ADDED = {
    "broadcast_to": ("input, *size: int",), "count_nonzero": ("input, *dim: int",), "squeeze": ("input, *dim: int",),
    "expand": ("input, size: ints, *, implicit: bool=False", "input, *size: int, implicit: bool=False"),
    "nan_to_num": ("input, nan: float=None, posinf: float=None, neginf: float=None, *, out=None",),
    "nan_to_num_": ("input, nan: float=None, posinf: float=None, neginf: float=None",),
    "narrow": ("input, dim, start: Tensor, length",),
    "fake_quantize_per_tensor_affine": ("input, scale: Tensor|float, zero_point: Tensor|int, quant_min, quant_max",),
}  # fmt: skip


def signatures(name: str, is_method: bool) -> list[str]:
    """The parameter lists that the functions of CALLS add."""
    return [row.removeprefix("input, ") if is_method else row for row in ADDED.get(name, ())]


def _function(name: str, is_method: bool) -> Callable:
    if is_method:
        return getattr(Tensor, name)
    return getattr(_C.torch, name, None) or getattr(_C.functional, name, None) or getattr(_C.ops, name)


def _with_layout(name: str, args: tuple, kwargs: dict):
    """torch.zeros(..., layout=) and others that create tensors, with a sparse layout; NotImplemented for other functions."""
    from .._sparse.create import with_layout

    return with_layout(name, args, kwargs)


def other_spelling(name: str, is_method: bool, in_place: bool, args: tuple, kwargs: dict):
    """Calls an operator with arguments in one of the other forms that PyTorch accepts; NotImplemented if none matches.
    """
    if isinstance(kwargs.get("layout"), layout) and kwargs["layout"] != strided:
        return _with_layout(name, args, kwargs)
    if "layout" in kwargs and name.endswith("_like") and args:  # a strided tensor like a sparse one
        like, rest = args[0], {k: v for k, v in kwargs.items() if k != "layout"}
        if like.is_nested:  # its layout is kept, as in PyTorch
            return _function(name, is_method)(*args, **rest)
        template = _C.torch.empty(like.shape, dtype=like.dtype, device=like.device)
        return _function(name, is_method)(template, *args[1:], **rest)
    if name in CALLS:
        return CALLS[name](_function(name, is_method), args, kwargs)
    key = name.removesuffix("_") if in_place else name
    renamed = RENAMED.get(key)
    if renamed and not renamed.keys().isdisjoint(kwargs):
        return _function(name, is_method)(*args, **{renamed.get(n, n): v for n, v in kwargs.items()})
    for order in ORDERS.get(key, ()) if len(args) > 1 else ():  # names have no order
        names = order.split()
        if is_method:
            names = ["input", *(n for n in names if n != "input")]
        rest = {n: v for n, v in kwargs.items() if n != "out"}
        bound = _ordered(names, args, rest)
        if bound is None or key in ("rsub", "subtract") and isinstance(bound["other"], Tensor):
            continue
        if names[-1] not in NUMBERS and not set(names).isdisjoint(NUMBERS):
            numbers = " and ".join(set(names) & set(NUMBERS))
            warnings.warn(f"This overload of {name} is deprecated: {name}({', '.join(names)}). Pass {numbers} by name", stacklevel=3)
        if "out" in kwargs:
            bound["out"] = kwargs["out"]
        return _function(name, is_method)(bound.pop("input"), **bound)
    return NotImplemented


_C.set_other_spellings(other_spelling)
