"""Control flow as functions: the branch or loop runs immediately, as in Python."""

from __future__ import annotations

from typing import Any, Callable

from .._C import Tensor


def cond(pred: Any, true_fn: Callable, false_fn: Callable, operands: tuple | list = ()) -> Any:
    """Returns true_fn(*operands) if pred is true, else false_fn(*operands). Waits for a tensor's value.

    Args:
        pred: a bool, a number, or a tensor with one element.
        operands: tensors, in nested lists, tuples and dicts.
    """
    if isinstance(pred, (bool, int, float)):
        return true_fn(*operands) if pred else false_fn(*operands)
    if not isinstance(pred, Tensor):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    from ..utils import _pytree

    if not isinstance(operands, (tuple, list)) or not all(isinstance(t, Tensor) for t in _pytree.tree_leaves(operands)):
        raise RuntimeError(
            "Expect operands to be a tuple of possibly nested dict/list/tuple that only consists of tensor leaves, but got "
            f"{operands}."
        )
    return true_fn(*operands) if bool(pred) else false_fn(*operands)


def while_loop(cond_fn: Callable, body_fn: Callable, carried_inputs: tuple | list) -> tuple:
    """Replaces the values by body_fn(*values) while cond_fn(*values) is true. Waits for each condition."""
    values = tuple(carried_inputs)
    while bool(cond_fn(*values)):
        result = body_fn(*values)
        values = tuple(result) if isinstance(result, (tuple, list)) else (result,)
        if len(values) != len(carried_inputs):
            raise RuntimeError(f"body_fn should return the same number of elements as carried_inputs, got {len(values)}")
    return values
