"""torch._check, torch._assert and similar functions, with which libraries check conditions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _C
from .._C import Tensor
from .._symbolic_bool import SymBool

__all__ = [
    "_assert", "_assert_async", "_check", "_check_index", "_check_is_size", "_check_not_implemented", "_check_tensor_all",
    "_check_tensor_all_with", "_check_type", "_check_value", "_check_with",
]  # fmt: skip


def _assert_true(condition: Any, message: str) -> None:
    """Raises AssertionError with the message if the condition is false. A tensor must have one element; reading it waits."""
    if not condition:
        raise AssertionError(message)


# Tracing records it as a node of the graph, by __torch_function__.
_assert = _C.overridable(_assert_true, "teletensor", "_assert")


def _check_with(error_type: type[Exception], cond: Any, message: Callable[[], object] | str | None) -> None:
    """Raises an exception of a type, with the message or its result as text, unless the condition holds.

    Raises:
        TypeError: the condition is not a bool, or the message is not callable.
    """
    if getattr(type(cond), "is_condition", False):  # of numbers that depend on values of a tensor whose computation is recorded
        return cond.require(message)
    if not isinstance(cond, (bool, SymBool)):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is not None and not callable(message) and not isinstance(message, str):
        raise TypeError("message must be a callable")
    text = "Expected cond to be True, but got False. (Could this error message be improved? If so, please report an enhancement request.)"
    raise error_type(text if message is None else message if isinstance(message, str) else str(message()))


def _of_type(error_type: type[Exception], name: str) -> Callable:
    def check(cond: bool, message: Callable[[], object] | None = None) -> None:
        _check_with(error_type, cond, message)

    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"Raises {error_type.__name__} unless the condition holds."
    return check


_check, _check_index = _of_type(RuntimeError, "_check"), _of_type(IndexError, "_check_index")
_check_value, _check_type = _of_type(ValueError, "_check_value"), _of_type(TypeError, "_check_type")
_check_not_implemented = _of_type(NotImplementedError, "_check_not_implemented")


def _check_is_size(i: int, message: Callable[[], object] | None = None, *, max: int | None = None) -> None:  # noqa: A002
    """Raises RuntimeError unless 0 <= i, and i <= max if it is given."""
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def _check_tensor_all_with(error_type: type[Exception], cond: Tensor, message: Callable[[], object] | None = None) -> None:
    """Raises an exception of a type unless all elements of a bool tensor are True. Waits for the engine.

    Raises:
        TypeError: the condition is not a bool tensor.
    """
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if str(cond.dtype) != "torch.bool":
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all().item()), message)


def _check_tensor_all(cond: Tensor, message: Callable[[], object] | None = None) -> None:
    """Raises RuntimeError unless all elements are True. Waits for the engine."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _assert_async(input: Tensor, assert_msg: str = "Expected Tensor with single nonzero value, but got zero") -> None:  # noqa: A002
    """Raises RuntimeError if a tensor of one element is zero. Waits for the engine, unlike PyTorch on a GPU."""
    if input.numel() != 1:
        raise RuntimeError(f"[_assert_async] expected a tensor of one element, got size {list(input.shape)}")
    if not input.item():
        raise RuntimeError(assert_msg)
