"""The handlers of a call of an operator object, called in one place and in PyTorch's order.

They are function modes and ``__torch_function__`` of the arguments, then dispatch modes and ``__torch_dispatch__``. The bindings
call the handlers of functions and methods in the same order (python/bindings/tensor/handlers.h).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .. import _C


def flat(values: Iterable[Any]) -> Iterator[Any]:
    """The values, with the items of lists and tuples in their place."""
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from value
        else:
            yield value


def flat_arguments(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple:
    """The arguments of a call, with the items of lists and tuples in their place."""
    values = (*args, *kwargs.values())
    for value in values:
        if isinstance(value, (list, tuple)):
            return tuple(flat(values))
    return values


def call_function_handlers(operator: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Passes a call to the function mode or the ``__torch_function__`` that overrides it; NotImplemented if there is none."""
    values = flat_arguments(args, kwargs)
    if _C._has_torch_function(values):
        return _C._handle_torch_function(f"torch.ops.{operator}", operator, values, args, kwargs)
    return NotImplemented


def call_handlers(overload: Any, args: tuple, kwargs: dict[str, Any], *, dispatches: bool) -> Any:
    """Passes a call of an overload to the first handler that applies; returns NotImplemented if none does.

    Args:
        overload: the overload, which handlers receive.
        args: the positional arguments of the call.
        kwargs: the keyword arguments of the call.
        dispatches: whether dispatch handlers receive the overload itself. They receive the operators of one that is composed.
    """
    result = call_function_handlers(overload, args, kwargs)
    if result is not NotImplemented:
        return result
    values = flat_arguments(args, kwargs)
    if dispatches and _C._is_dispatched(values):
        return call_dispatch_handlers(overload, args, kwargs)
    return NotImplemented


def _handling_types(values: Iterable[Any]) -> list[type]:
    """The types of tensors that handle calls, each once, subclasses first."""
    found: list[type] = []
    for value in values:
        for item in value if isinstance(value, (list, tuple)) else (value,):
            kind = type(item)
            if kind not in found and _C._handles_dispatch(item):
                place = next((i for i, other in enumerate(found) if issubclass(kind, other)), len(found))
                found.insert(place, kind)
    return found


kernel_classes: set[type] = set()  # of tensors whose __torch_dispatch__ only runs the kernel with the same arguments


def kernel_takes(overload: Any, values: Iterable[Any]) -> bool:
    """Whether a call that is dispatched can run the overload's kernel at once, as all its handlers would."""
    if _C._len_torch_dispatch_stack() or not overload.kernels or overload.dispatch_rules:
        return False
    found = False
    for value in values:
        if type(value) in kernel_classes:
            found = True
        elif _C._handles_dispatch(value):
            return False
    return found


classes_with_rules: set[type] = set()  # those for which torch.library.register_torch_dispatch registered a function


def _dispatch_rule(overload: Any, kind: type) -> Any:
    """The function that torch.library.register_torch_dispatch registered for a class, or None."""
    return getattr(overload, "dispatch_rules", {}).get(kind)


def call_dispatch_handlers(overload: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Calls the innermost mode, then the types' handlers, until one returns a result other than NotImplemented.

    Raises:
        TypeError: all handlers returned NotImplemented.
    """
    kinds = _handling_types((*args, *kwargs.values()))
    types, refused = tuple(kinds), []
    if _C._len_torch_dispatch_stack():
        mode = _C._pop_torch_dispatch_stack()
        try:
            rule = _dispatch_rule(overload, type(mode))
            result = rule(mode, overload, types, args, kwargs) if rule else mode.__torch_dispatch__(overload, types, args, kwargs)
        finally:
            _C._push_on_torch_dispatch_stack(mode)
        if result is not NotImplemented:
            return result
        refused.append(f"  - mode object {mode!r}\n")
    for kind in kinds:
        rule = _dispatch_rule(overload, kind)
        result = rule(kind, overload, types, args, kwargs) if rule else kind.__torch_dispatch__(overload, types, args, kwargs)
        if result is not NotImplemented:
            return result
        refused.append(f"  - tensor subclass {kind!r}\n")
    raise TypeError(
        f"Multiple dispatch failed for 'torch.ops.{overload}'; all __torch_dispatch__ handlers returned NotImplemented:\n\n"
        f"{''.join(refused)}"
    )
