"""Builtin functions with effects outside of the graph, and functions of the bindings. Imports all other handlers."""

from __future__ import annotations

from .. import _C
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
    raise Break("a call of a builtin function with effects outside of the graph")


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
