"""Functions of NumPy of numbers, and of lists and tuples of numbers, such as np.sqrt(n) and np.prod(shape): computed during the capture."""

from __future__ import annotations

import sys
from typing import Any

from .. import _C
from ._comparisons import fold
from ._source import CALL, CHECK_EQUAL, CHECK_IS, DICT_ITEM, constant
from ._values import Break, Constant, Opaque, Value

# Functions beside the ufuncs. Their results are numbers for these arguments, or the call ends the graph.
_OF_SEQUENCES = frozenset((
    "prod", "sum", "mean", "std", "var", "median", "min", "max", "amin", "amax", "argmin", "argmax", "all", "any", "ptp", "round", "around",
    "clip", "dot", "size", "ndim", "trunc", "interp", "isclose", "allclose", "isscalar",
))  # fmt: skip

_ERRORS = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}


def is_function_of_numbers(function: Any) -> bool:
    """Whether NumPy computes a number from numbers by the function, without effects. NumPy is imported."""
    numpy = sys.modules["numpy"]
    if type(function) is numpy.ufunc:
        return getattr(numpy, function.__name__, None) is function
    name = getattr(function, "__name__", "")
    return name in _OF_SEQUENCES and getattr(numpy, name, None) is function


class NumPyNumbers:
    """A part of Executor."""

    _has_guarded_errors = False

    def guard_numpy_errors(self) -> None:
        """Adds guards that NumPy treats floating-point errors as it does by default, which what it computes depends on."""
        if self._has_guarded_errors:
            return
        self._has_guarded_errors = True
        numpy = sys.modules["numpy"]
        found = numpy.geterr()
        if found != _ERRORS:
            raise Break("numpy.errstate()")
        for name, treatment in found.items():
            self.guards.check(CHECK_EQUAL, constant(numpy.geterr).then(CALL).then(DICT_ITEM, name), treatment)

    def call_numpy(self, function: Opaque, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """A call of such a function, if all arguments are numbers."""
        name = function.obj.__name__
        constants = [self.python_value(self.real(v)) for v in args]
        keywords = {key: self.python_value(self.real(v)) for key, v in kwargs.items()}
        if not all(map(self._has_numbers, [*constants, *keywords.values()])):
            raise Break(f"numpy.{name}() of other objects than numbers")
        self.guards.check(CHECK_IS, function.source, function.obj)
        self.guard_numpy_errors()
        found = fold(lambda: function.obj(*constants, **keywords)).value
        if not self._has_numbers(found) or isinstance(found, (list, tuple)):
            raise Break(f"numpy.{name}() returns a {type(found).__name__}")
        return Constant(found)

    def _has_numbers(self, obj: Any) -> bool:
        if type(obj) in (list, tuple, _C.Size):
            return all(map(self._has_numbers, obj))
        return type(obj) in (int, float, complex, bool) or self.is_numpy_scalar(obj)
