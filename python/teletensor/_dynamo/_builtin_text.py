"""Texts: str(), and what format strings need."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from .. import _C
from ._attributes import raise_
from ._comparisons import fold
from ._handlers import handles
from ._values import Break, Constant, ExceptionValue, ObjectValue, SequenceValue, Value, kind
from ._wrap import has_own_text

# AttributeError and NameError have methods of their own that do the same.
_TEXTS_OF_ARGUMENTS = (BaseException.__str__, KeyError.__str__, AttributeError.__str__, NameError.__str__)


@handles(str)
def _str(ex, args, kwargs):
    if not args:
        return Constant("")
    return text_of(ex, args[0], str)


def text_of(ex: Any, value: Value, function: Callable) -> Value:
    """str(value) or repr(value)."""
    value = ex.real(value)
    if function is ascii and isinstance(value, (ObjectValue, ExceptionValue)):
        text = ex.python_value(text_of(ex, value, repr))
        return Constant(text.encode("ascii", "backslashreplace").decode())
    if isinstance(value, ObjectValue) or isinstance(value, SequenceValue) and has_own_text(value.cls):
        for name in ("__str__", "__repr__") if function is str else ("__repr__",):
            found = _text_by_method(ex, value, name)
            if found is not None:
                return checked_text(ex, name, found)
        raise Break("the text of an object")
    if isinstance(value, ExceptionValue):
        text = ex.class_attribute(value.cls, "__str__")
        if function is str and text in _TEXTS_OF_ARGUMENTS:
            if len(value.args) == 1:
                return text_of(ex, value.args[0], repr if text is KeyError.__str__ else str)
            return Constant(str(tuple(ex.python_value(a) for a in value.args))) if value.args else Constant("")
        if function is repr and ex.class_attribute(value.cls, "__repr__") is BaseException.__repr__:
            parts = [ex.python_value(text_of(ex, a, repr)) for a in value.args]
            return Constant(f"{value.cls.__name__}({', '.join(parts)})")
        method = "__repr__" if function is repr else "__str__"
        found = ex.call_method_named(value, method, [])
        if found is not None:
            return checked_text(ex, method, found)
        raise Break("the text of an exception")
    obj = ex.python_value(value)
    if not has_plain_text(obj) and not ex.is_numpy_scalar(obj):
        raise Break(f"the text of a {kind(obj)}")
    return fold(function, obj)


def _text_by_method(ex: Any, value: Value, name: str) -> Value | None:
    if isinstance(value, ObjectValue):
        return ex.call_method_named(value, name, [])
    found = ex.class_attribute(value.cls, name)  # of a namedtuple
    return ex.call(ex.wrap_class_function(found), [value], {}) if isinstance(found, types.FunctionType) else None


def checked_text(ex: Any, method: str, found: Value) -> Value:
    """The result of a method in Python, which must be a string."""
    found = ex.real(found)
    if not issubclass(found.cls, str):
        return raise_(TypeError, f"{method} returned non-string (type {found.cls.__name__})")
    return found


def has_plain_text(obj: Any) -> bool:
    """Whether equal objects have the same text, which no method in Python makes."""
    if has_own_text(type(obj)):
        return False
    if isinstance(obj, (set, frozenset)) and len(obj) > 1:
        return False  # equal sets may have other orders
    if isinstance(obj, (list, tuple, set, frozenset)):
        return all(has_plain_text(o) for o in obj)
    if isinstance(obj, dict):
        return all(has_plain_text(o) for pair in obj.items() for o in pair)
    return isinstance(obj, (int, float, complex, str, bytes, type(None), type, range, type(Ellipsis), _C.dtype, _C.device))
