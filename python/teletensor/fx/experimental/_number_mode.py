"""The function mode of recordings whose functions receive numbers that depend on values (_numbers.py).

Functions in C would read the value of a Number among their arguments. The mode passes a token in its place, a number that nothing else is
equal to, for which the recording of the operator substitutes the Number again. It is an error if an operator does not receive the token.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from ... import _C
from ..._C import Tensor
from ..._library.operators import OpOverload
from ...overrides import TorchFunctionMode
from ._numbers import Condition, Number, guard_error, text_of
from ._recorded import RecordedTensor, own_read


def _pad(input: Any, pad: Any, mode: str = "constant", value: Any = None) -> tuple | None:  # noqa: A002
    return (
        ("constant_pad_nd.default", input, list(pad), 0.0 if value is None else value) if mode == "constant" else None
    )


def _one_hot(input: Any, num_classes: Any = -1) -> tuple:  # noqa: A002
    return "one_hot.default", input, num_classes


# Functions in Python that pass their arguments to the engine: the operators with these arguments.
_CALLED_IN_C: dict[str, Callable[..., tuple | None]] = {"pad": _pad, "one_hot": _one_hot}


class _Counting(TorchFunctionMode):
    """Receives a call whose arguments have been converted, and does nothing."""

    def __torch_function__(self, func: Any, types: tuple, args: tuple = (), kwargs: dict | None = None) -> None:
        pass


class NumberMode(TorchFunctionMode):
    """Records calls with Numbers among their arguments.

    Args:
        owner: the numbers of the recording (_unbacked.Values).
    """

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def __torch_function__(self, func: Any, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if (read := own_read(func, args)) is not None:
            with self:
                return read(*args, **kwargs)
        numbers = [n for n in _leaves([*args, *kwargs.values()]) if type(n) in (Number, Condition)]
        with self.owner.noting(getattr(func, "__name__", str(func)), numbers) if numbers else contextlib.nullcontext():
            return self._record(func, args, kwargs, numbers, sys._getframe(1))

    def _record(self, func: Any, args: tuple, kwargs: dict, numbers: list, frame: Any) -> Any:
        owner = self.owner
        is_python = type(func) is _C.OverridableFunction
        if is_python and _C._len_torch_function_stack():  # other modes receive the call, too
            owner.check_reads()
            if numbers:
                raise owner.failed(guard_error(f"{func.__name__}() of a number, within a function mode"))
            return func(*args, **kwargs)
        if numbers and not is_python:
            owner.excuse_reads(frame, numbers, self._reads(func, args, kwargs))
        else:
            owner.check_reads()
        if (
            numbers
            and is_python
            and (rule := _CALLED_IN_C.get(func.__name__))
            and (call := rule(*args, **kwargs)) is not None
        ):
            with self:
                return owner.recording.call(*call)
        if is_python:
            with self:
                return func.__wrapped__(*args, **kwargs)
        if not numbers:
            return func(*args, **kwargs)
        if getattr(func, "_opname", "") == "_assert_scalar" and type(args[0]) is Condition:
            return args[0].require(*args[1:])
        if isinstance(func, OpOverload):
            if any(a.is_write for a in func._schema.arguments):
                raise owner.failed(guard_error(f"a number as an argument of {func}"))
            with self:
                return owner.recording.one(func, args, kwargs)
        if getattr(func, "__name__", "") in ("__getitem__", "__setitem__") and not isinstance(args[0], RecordedTensor):
            source = owner.recording.own(args[0])
            with self:
                return getattr(RecordedTensor, func.__name__)(source, *args[1:], **kwargs)
        return self._call(func, args, kwargs)

    def _reads(self, func: Any, args: tuple, kwargs: dict) -> int:
        """How many values the function reads when it converts its arguments."""
        self.owner.counted = 0
        try:
            with _Counting():
                func(*args, **kwargs)
            return self.owner.counted
        finally:
            self.owner.counted = None

    def _call(self, func: Any, args: tuple, kwargs: dict) -> Any:
        owner = self.owner
        wanted: dict[Any, Number] = {}

        def passed(value: Any) -> Any:
            if type(value) is Number:
                token = owner.token(value)
                wanted[token] = value
                return token
            if type(value) is Condition:
                return bool(value)
            if isinstance(value, (list, tuple)) and not isinstance(value, Tensor):
                return tuple(map(passed, value)) if isinstance(value, tuple) else list(map(passed, value))
            if isinstance(value, slice):
                return slice(passed(value.start), passed(value.stop), passed(value.step))
            return value

        given = [passed(v) for v in args], {k: passed(v) for k, v in kwargs.items()}
        missing = set(wanted)
        owner.calls.append((wanted, missing))
        try:
            result = func(*given[0], **given[1])
        except Exception as e:
            if missing and owner.error is None:
                raise owner.failed(guard_error(text_of(wanted[next(iter(missing))]))) from e
            raise
        finally:
            owner.calls.pop()
        if missing:
            raise owner.failed(guard_error(text_of(wanted[next(iter(missing))])))
        return result


def _leaves(values: Any) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (list, tuple)) and not isinstance(value, Tensor):
            yield from _leaves(value)
        elif isinstance(value, slice):
            yield from (value.start, value.stop, value.step)
        elif isinstance(value, dict):
            yield from _leaves(value.values())
        else:
            yield value


@contextlib.contextmanager
def number_mode(owner: Any) -> Iterator[None]:
    """A context in which the mode is the innermost one."""
    count = _C._len_torch_function_stack()
    if owner is None or count and isinstance(mode := _C._get_function_stack_at(count - 1), NumberMode) and mode.owner is owner:
        yield
    else:
        with NumberMode(owner):
            yield
