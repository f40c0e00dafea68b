"""Checks of the values of parameters and samples. The checks of one call are combined and read once."""

from __future__ import annotations

import functools
import struct
import threading
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from .. import _C
from .._C import Tensor
from .._grad_mode import no_grad
from .._tracing_state import is_compiling
from ._constraint_types import Constraint, _Bounded, _LowerBounded, _Real, _UpperBounded


class Check(NamedTuple):
    """A constraint on a tensor, or the elements that are valid, and the text of the error."""

    constraint: Constraint | None
    value: Tensor
    message: Callable[[], str]

    def is_valid(self) -> Any:
        """A tensor with one element: whether all of the value is valid. None if the values are being traced."""
        valid = self.value if self.constraint is None else self.constraint.check(self.value)
        while not hasattr(valid, "has_no_values") and isinstance(inner := getattr(valid, "_value", None), Tensor):
            valid = inner  # all entries of a vmap
        return None if hasattr(valid, "has_no_values") else valid.all()


class _Deferred(threading.local):
    checks: list[Check] | None = None  # those of the function of `one_read` that runs


_deferred = _Deferred()


def require(checks: Iterable[Check]) -> None:
    """Raises ValueError with the message of the first check that fails. Waits for the engine."""
    if _deferred.checks is not None:
        _deferred.checks.extend(checks)
        return
    with no_grad():
        results = [(check, valid) for check in checks if (valid := check.is_valid()) is not None]
        if not results or bool(functools.reduce(lambda a, b: a & b, (valid for _, valid in results))):
            return
    raise ValueError(next(check.message() for check, valid in results if not bool(valid)))


def one_read(function: Callable) -> Callable:
    """Decorator of a function that calls others which check values: all of them are read once, at the end."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        if is_compiling() or _deferred.checks is not None:
            return function(*args, **kwargs)
        _deferred.checks = checks = []
        try:
            result = function(*args, **kwargs)
        finally:
            _deferred.checks = None
        require(checks)
        return result

    return call


def holds_for(constraint: Constraint, number: Any, dtype: _C.dtype) -> bool:
    """Whether a constraint on elements is known to hold for a number in this dtype, without the engine."""
    if type(number) not in (int, float):
        return False
    kinds = (_Real, _LowerBounded, _UpperBounded, _Bounded)
    if not isinstance(constraint, kinds) or not type(constraint).__module__.startswith(__package__):
        return False
    if not all(isinstance(bound, (int, float)) for bound in vars(constraint).values()):
        return False
    try:
        rounded = float(number) if dtype is _C.float64 else struct.unpack("f", struct.pack("f", number))[0]
    except (OverflowError, struct.error):
        return False
    return dtype in (_C.float32, _C.float64) and bool(constraint.check(rounded))
