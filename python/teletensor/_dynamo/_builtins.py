"""Builtin functions with effects outside of the graph, and functions of the bindings. Imports all other handlers."""

from __future__ import annotations

from .. import _C, _functions
from . import (  # noqa: F401 - they register handlers
    _builtin_containers,
    _builtin_iteration,
    _builtin_numbers,
    _builtin_text,
    _iterator_forms,
    _library_forms,
    _prints,
)
from ._builtin_attributes import parts_of_annotation, signature, update_wrapper  # noqa: F401
from ._handlers import handles
from ._values import Break, Constant, SequenceValue, TensorValue


@handles(locals, globals, dir, input, open, exec, eval, compile, __import__, breakpoint)
def _unsupported(ex, args, kwargs):
    raise Break("a call of a builtin function with effects outside of the graph, such as open() and exec()")


@handles(_C._is_wrapper)
def _is_wrapper(ex, args, kwargs):
    return Constant(False)


@handles(_C._has_torch_function, _C._has_torch_function_unary, _C._has_torch_function_variadic)
def _has_torch_function(ex, args, kwargs):
    for value in args:
        for part in ex.elements(value) if isinstance(ex.real(value), SequenceValue) else [value]:
            if not isinstance(ex.real(part), (TensorValue, Constant, SequenceValue)):
                raise Break("__torch_function__")
    return Constant(False)


@handles(_C.tensor)
def _tensor_of_data(ex, args, kwargs):
    if len(args) != 1 or isinstance(ex.real(args[0]), TensorValue) or kwargs.keys() - {"dtype", "device"}:
        raise Break("a tensor of other data than numbers")
    return ex.call_in_graph("call_function", _functions.tensor, args, kwargs)


@handles(_C.Tensor)
def _legacy_tensor(ex, args, kwargs):
    """torch.Tensor(data) and torch.Tensor(*sizes)."""
    values, dtype = [ex.real(a) for a in args], Constant(_C.default_dtype())
    is_data = len(values) == 1 and isinstance(values[0], SequenceValue) and values[0].cls in (list, tuple)
    if kwargs or not is_data and not (values and ex.are_sizes(values)):
        raise Break("a Tensor is created of other data than numbers")
    options = {"dtype": dtype, "device": Constant(_C.default_devices()[1])}
    return ex.call_in_graph("call_function", _functions.tensor if is_data else _C.torch.empty, args, options)
