"""torch._dynamo.decorators: marks on functions and tensors that say how they are compiled."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any

from .._C import Tensor
from .._options import reject_values
from ..fx.experimental.symbolic_shapes import ConstraintViolationError
from ..nn import Module
from . import _marks, _tensors, config
from ._capture import Executor
from ._stance import disabled
from ._values import Break, Constant
from .eval_frame import Compiler, OptimizedModule, compiled


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None, wrapping: bool = True) -> Any:
    """Returns a function that is not compiled: calls of it end a graph, and it runs as plain Python. Also a decorator.

    Args:
        fn: a function, or a module, whose calls are then not compiled.
        recursive: compiled functions that it calls run as plain Python, too.
        reason: a text for logs.
        wrapping: False: mark `fn` itself instead of a function around it.
    """
    if fn is None:
        return lambda f: disable(f, recursive, reason=reason, wrapping=wrapping)
    if isinstance(fn, Module) and not isinstance(fn, OptimizedModule):
        fn.__dict__[_marks.DISABLED] = True
        return fn
    target = fn
    while _marks.ORIGINAL in getattr(target, "__dict__", {}):
        target = getattr(target, _marks.ORIGINAL)
    if inspect.isclass(target):
        target.__init__ = disable(target.__init__, recursive, reason=reason)
        return target
    if not recursive or not wrapping:
        if isinstance(target, types.FunctionType):
            target._torchdynamo_disable = True
            target._torchdynamo_disable_msg = reason
            return target

    @functools.wraps(target)
    def plain(*args: Any, **kwargs: Any) -> Any:
        with disabled():
            return target(*args, **kwargs)

    plain._torchdynamo_disable = True
    plain._torchdynamo_disable_msg = reason
    return plain


def run(fn: Any = None) -> Any:
    """Returns a function that is not compiled further, or without one a decorator that does."""
    return disable(fn)


def graph_break(msg: str = "") -> None:
    """Ends the graph of a compiled function at this call."""


def skip_frame(msg: str = "") -> None:
    """Ends the graph of a compiled function at this call."""


def _mark_break(function: Callable, reason: str) -> None:
    _marks.graph_breaks[id(function)] = (function, reason)


_mark_break(graph_break, "graph_break()")
_mark_break(skip_frame, "skip_frame()")


def _functions(fn: Any, name: str) -> list[Any]:
    found = list(fn) if isinstance(fn, (list, tuple)) else [fn]
    for f in found:
        if not callable(f):
            raise AssertionError(f"[{name}] expected a callable, got {type(f).__name__}")
    return found


def allow_in_graph(fn: Any) -> Any:
    """Makes calls of a function one operation of graphs; returns the function, or the list of functions.

    The function must compute its results from its arguments alone, without side effects. Raises AssertionError if one cannot be
    called.
    """
    for f in _functions(fn, "allow_in_graph"):
        _tensors.allowed[id(f)] = f
        _tensors.disallowed.pop(id(f), None)
    return fn


def nonstrict_trace(traceable_fn: Callable) -> Callable:
    """Like allow_in_graph()."""
    return allow_in_graph(traceable_fn)


def disallow_in_graph(fn: Any) -> Any:
    """Makes calls of a function end the graph; returns the function."""
    for f in _functions(fn, "disallow_in_graph"):
        _tensors.allowed.pop(id(f), None)
        _tensors.disallowed[id(f)] = f
        _mark_break(f, f"{getattr(f, '__name__', f)} is not allowed in graphs")
    return fn


forbid_in_graph = disallow_in_graph


def assume_constant_result(fn: Callable) -> Callable:
    """Makes the result of a function a constant of compiled functions, which call it while they are captured."""
    _functions(fn, "assume_constant_result")
    _marks.constant_results[id(fn)] = fn

    def constant_result(ex: Any, args: list, kwargs: dict) -> Any:
        values = [ex.python_value(a) for a in args]
        found = fn(*values, **{k: ex.python_value(v) for k, v in kwargs.items()})
        if isinstance(found, (int, float, complex, str, bytes, bool, type(None), tuple)):
            return ex.constant_value(found)
        raise Break("a constant result that is not a number, string or tuple")

    Executor.handlers_of_functions[fn] = constant_result
    return fn


def substitute_in_graph(
    original_fn: Callable, *, can_constant_fold_through: bool = False, skip_signature_check: bool = False
) -> Callable:
    """Returns a decorator; compiled functions execute its function where they call `original_fn`.

    Args:
        original_fn: a function, for example in C.
        can_constant_fold_through: call `original_fn` itself where all arguments are constants.
        skip_signature_check: do not compare the parameters of the functions.
    """
    if not isinstance(original_fn, (types.FunctionType, types.BuiltinFunctionType)):
        raise TypeError(f"[substitute_in_graph] expected a function, got {type(original_fn).__name__}")

    def decorate(function: Callable) -> Callable:
        if not skip_signature_check:
            _compare_signatures(original_fn, function)

        def replaced(ex: Any, args: list, kwargs: dict) -> Any:
            if can_constant_fold_through and not kwargs and all(isinstance(ex.real(a), Constant) for a in args):
                return ex.constant_value(original_fn(*(ex.real(a).value for a in args)))
            from ._source import constant

            return ex.call(ex.wrap(function, constant(function)), args, kwargs)

        if isinstance(original_fn, types.FunctionType):
            Executor.handlers_of_functions[original_fn] = replaced
        else:
            Executor.handlers[original_fn] = replaced
        return function

    return decorate


def _compare_signatures(original: Callable, function: Callable) -> None:
    try:
        wanted = inspect.signature(original)
    except (TypeError, ValueError):
        return
    found = inspect.signature(function)
    if [(p.name, p.kind) for p in wanted.parameters.values()] != [(p.name, p.kind) for p in found.parameters.values()]:
        raise TypeError(f"[substitute_in_graph] expected the parameters {wanted}, got {found}")


def optimize(backend: Any = "inductor", *, nopython: bool = False, dynamic: bool | None = None, **options: Any) -> Callable:
    """Returns a decorator like torch.compile with fullgraph=nopython."""
    if options:
        raise NotImplementedError(f"[optimize] expected backend, nopython and dynamic, got {', '.join(options)}")

    def decorate(fn: Any) -> Any:
        compiler = Compiler(backend, nopython, None, None, dynamic)
        return OptimizedModule(fn, compiler) if isinstance(fn, Module) else compiled(fn, compiler)

    return decorate


def _check_mark(name: str, t: Any, index: Any) -> None:
    _marks.has_marked_tensors = True
    if not isinstance(t, Tensor):
        raise TypeError(f"[{name}] expected a Tensor, got {type(t).__name__}")
    for i in index if isinstance(index, (list, tuple)) else [index]:
        if i is not None and not -t.dim() <= i < max(t.dim(), 1):
            raise IndexError(f"[{name}] expected a dimension of a tensor with {t.dim()}, got {i}")


def mark_static(t: Any, index: Any = None) -> None:
    """Makes sizes of a tensor constants of compiled functions and of the Programs of torch.compiler.trace().

    Args:
        t: a tensor. Other objects have no sizes.
        index: a dimension or several; None: all.
    """
    if not isinstance(t, Tensor):
        return
    _check_mark("mark_static", t, index)
    dims = range(t.dim()) if index is None else index if isinstance(index, (list, tuple)) else [index]
    _add_marks(t, "_dynamo_static_indices", dims)


def _add_marks(t: Tensor, name: str, index: Any) -> None:
    dims = index if isinstance(index, (list, tuple, range)) else [index]
    setattr(t, name, {*getattr(t, name, ()), *(dim % max(t.dim(), 1) for dim in dims)})


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Checks its argument: tensors have no address in this process."""
    _check_mark("mark_static_address", t, None)


def maybe_mark_dynamic(t: Any, index: Any, *, min: int | None = None, max: int | None = None) -> None:  # noqa: A002 - PyTorch's names
    """Makes sizes of a tensor symbols of functions that are compiled for it, where they can be.

    Args:
        t: a tensor that compiled functions have not received yet.
        index: a dimension or several.
        min, max: not implemented.
    """
    _check_mark("maybe_mark_dynamic", t, index)
    reject_values("maybe_mark_dynamic", "the range of a size is found by the function", min=min, max=max)
    _add_marks(t, "_dynamo_weak_dynamic_indices", index)


def mark_dynamic(
    t: Any, index: Any, *, hint_override: int | None = None, min: int | None = None, max: int | None = None,  # noqa: A002
    specialize_on: Any = None,
) -> None:  # fmt: skip
    """Makes sizes of a tensor symbols of functions that are compiled for it: the code serves all sizes of at least 2.

    Functions that require one size raise ConstraintViolationError when they are compiled.

    Args:
        t: a tensor that compiled functions have not received yet.
        index: a dimension or several.
        min, max: the sizes for which the code is used; others are compiled again.
        hint_override, specialize_on: not implemented.
    """
    _check_mark("mark_dynamic", t, index)
    reject_values("mark_dynamic", "code is made for any size", hint_override=hint_override, specialize_on=specialize_on or None)
    _add_marks(t, "_dynamo_dynamic_indices", index)
    for dim in index if isinstance(index, (list, tuple)) else [index]:
        size = t.shape[dim]
        if min is not None and size < min or max is not None and size > max:
            raise ConstraintViolationError(f"[mark_dynamic] expected a size of {min or 0} to {max}, got {size}")
    if min is not None or max is not None:
        t._dynamo_dynamic_ranges = {
            **getattr(t, "_dynamo_dynamic_ranges", {}),
            **{dim % t.dim(): (min, max) for dim in (index if isinstance(index, (list, tuple)) else [index])},
        }


def mark_unbacked(
    t: Any, index: Any, hint_override: int | None = None, strict: bool = False, specialize_on: Any = None,
    shape_id: str | None = None, min: int | None = None, max: int | None = None,  # noqa: A002 - PyTorch's names
) -> None:  # fmt: skip
    """Makes sizes of a tensor symbols by which functions that are compiled for it may decide nothing, except that they are at least 2.

    A decision by such a size ends the graph, unless torch._check() or `min` and `max` have required the answer.

    Args:
        t: a tensor that compiled functions have not received yet.
        index: a dimension or several.
        strict: whether functions that require one size raise ConstraintViolationError when they are compiled.
        min, max: the sizes for which the code is used; others are compiled again.
        hint_override, specialize_on, shape_id: not implemented.
    """
    _check_mark("mark_unbacked", t, index)
    reject_values(
        "mark_unbacked", "code is made for any size", hint_override=hint_override, specialize_on=specialize_on or None, shape_id=shape_id
    )
    if strict or min is not None or max is not None:
        mark_dynamic(t, index, min=min, max=max)
    else:
        maybe_mark_dynamic(t, index)
    _add_marks(t, "_dynamo_unbacked_indices", index)


def is_dynamo_disable_recursive(method: Any) -> bool | None:
    """Whether disable() has marked a function: True or False for its argument `recursive`; None if it has not."""
    own = getattr(method, "__dict__", {})
    return None if not own.get(_marks.DISABLED) else "__wrapped__" in own


class error_on_graph_break(ContextDecorator):  # noqa: N801 - PyTorch's name
    """A context in which functions that are captured raise Unsupported at a graph break."""

    def __init__(self, error_on_graph_break: bool) -> None:
        self._value, self._before = error_on_graph_break, []

    def __enter__(self) -> None:
        self._before.append(config.error_on_graph_break)
        config.error_on_graph_break = self._value

    def __exit__(self, *exc: object) -> None:
        config.error_on_graph_break = self._before.pop()
