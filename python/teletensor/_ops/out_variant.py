"""`out=` for functions composed of several operators."""

from __future__ import annotations

import functools
from typing import Callable

from .. import _C
from .._C import Tensor
from .._grad_mode import before_write
from .._named_results import in_same_type

# Names of a function's first argument: torch.det(input=x) and torch.linalg.det(A=x) are the same function.
FIRST_NAMES = ("input", "A", "self", "x", "x1", "a")


def _with_first(function: Callable, kwargs: dict) -> tuple:
    """The first argument, if it was passed by another name than the parameter's; that name is removed from `kwargs`."""
    code = getattr(function, "__code__", None)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code and code.co_argcount else ()
    if names and names[0] not in kwargs:
        for name in FIRST_NAMES:
            if name in kwargs and name not in names:
                return (kwargs.pop(name),)
    return ()


def out_variant(function: Callable, *, exact: bool = False) -> Callable:
    """Adds `out=` to a function: results are cast to out's dtype or, if `exact`, must have that dtype."""

    @functools.wraps(function)
    def variant(*args, out=None, **kwargs):
        if not args:
            args = _with_first(function, kwargs)
        if out is None:
            return function(*args, **kwargs)
        targets = (out,) if isinstance(out, Tensor) else tuple(out)
        if _C.is_grad_enabled() and any(t.requires_grad for t in (*args, *kwargs.values(), *targets) if isinstance(t, Tensor)):
            raise RuntimeError(
                f"{function.__name__}(): functions with out=... arguments don't support automatic differentiation, but "
                "one of the arguments requires grad."
            )
        results = function(*args, **kwargs)
        results = (results,) if isinstance(results, Tensor) else results
        if len(targets) != len(results):
            raise TypeError(f"{function.__name__}(): expected {len(results)} out tensors, got {len(targets)}")
        for result, target in zip(results, targets):
            _write(function.__name__, result, target, exact)
        return in_same_type(results, targets) if hasattr(results, "_fields") else out

    variant.added_keyword = "out=None"  # for tools that read signatures
    return variant


exact_out_variant = functools.partial(out_variant, exact=True)


def _write(name: str, result: Tensor, target: Tensor, exact: bool) -> None:
    if exact and result.dtype is not target.dtype:
        raise RuntimeError(f"[{name}] Expected out tensor to have dtype {result.dtype}, but got {target.dtype} instead")
    if not _C.can_cast(result.dtype, target.dtype):
        raise RuntimeError(f"[{name}] result type {result.dtype} can't be cast to the desired output type {target.dtype}")
    if target.shape != result.shape:
        target.resize_(list(result.shape))
    _C.ops.assign(target, result, out=target)


def out_variants(scope: dict, names: tuple[str, ...], exact: tuple[str, ...] = ()) -> dict[str, Callable]:
    """Adds `out=` to the named functions of a module's scope; the `exact` ones do not cast."""
    return {name: out_variant(scope[name]) for name in names} | {name: exact_out_variant(scope[name]) for name in exact}


def inplace_variant(name: str, *, exact: bool = False) -> Callable:
    """Returns a method `name_` that computes `name` and copies the result into the tensor, cast unless `exact`."""
    function = getattr(Tensor, name)

    def method(self: Tensor, *args, **kwargs) -> Tensor:
        result = function(before_write(self), *args, **kwargs)
        if exact and result.dtype is not self.dtype:
            raise RuntimeError(
                f"the base given to {name}_ has dtype {self.dtype} but the operation's result requires dtype {result.dtype}"
            )
        if not _C.can_cast(result.dtype, self.dtype):
            raise RuntimeError(f"[{name}_] result type {result.dtype} can't be cast to the desired output type {self.dtype}")
        return _C.ops.assign(self, result, out=self)

    functools.update_wrapper(method, function)
    method.__name__, method.__doc__ = f"{name}_", f"{name}, in place."
    return method
