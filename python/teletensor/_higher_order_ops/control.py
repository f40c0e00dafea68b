"""Control flow as functions and operators: a call runs immediately, as in Python; a recording adds a node with graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._C import Tensor, torch
from .._grad_mode import set_grad_enabled
from .._symbolic_bool import SymBool, hint
from ..utils import _pytree as pytree
from ._operator import HigherOrderOperator


def _results(value: Any) -> tuple:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _inside(tensor: Any) -> Any:
    """The tensor inside of the transforms of torch.func around it."""
    while hasattr(tensor, "_level"):
        tensor = tensor._value
    return tensor


def _is_mapped(tensor: Any) -> bool:
    """Whether a tensor has other values for the entries of a vmap."""
    return hasattr(tensor, "_level") and (hasattr(tensor._level, "expanded") or _is_mapped(tensor._value))


def _selected(chosen: Tensor, a: Any, b: Any) -> Any:
    """For each entry of a vmap, the results `a` if `chosen` is true, otherwise `b`."""
    leaves, spec = pytree.tree_flatten(a)
    others, other_spec = pytree.tree_flatten(b)
    if spec != other_spec:
        raise RuntimeError(f"[vmap] expected results of the same structure, got {spec} and {other_spec}")
    chosen = chosen.reshape(())
    return pytree.tree_unflatten([x if x is y else torch.where(chosen, x, y) for x, y in zip(leaves, others)], spec)


def _cond(pred: Any, true_fn: Callable, false_fn: Callable, operands: Any = ()) -> Any:
    """The results of one of two functions; both are called if vmap maps the predicate."""
    if _is_mapped(pred):
        return _selected(pred, true_fn(*operands), false_fn(*operands))
    return (true_fn if bool(_inside(pred)) else false_fn)(*operands)


def _while_loop(cond_fn: Callable, body_fn: Callable, carried_inputs: tuple, additional_inputs: tuple = ()) -> tuple:
    """Values that a function replaces while another one is true; for each entry on its own, if vmap maps the condition."""
    values = tuple(carried_inputs)
    while True:
        active = _results(cond_fn(*values, *additional_inputs))[0]
        if not (_inside(active).any() if _is_mapped(active) else _inside(active)):
            return values
        found = _results(body_fn(*values, *additional_inputs))
        if len(found) != len(carried_inputs):
            raise RuntimeError(f"body_fn should return the same number of elements as carried_inputs, got {len(found)}")
        values = _selected(active, found, values) if _is_mapped(active) else found


def _scan(combine_fn: Callable, init: list, xs: list, additional_inputs: tuple = ()) -> tuple:
    """The last carried values, and the stacked results of a function of carried values and rows."""
    carried, rows = list(init), []
    for i in range(xs[0].shape[0]):
        found = _results(combine_fn(*carried, *(x[i] for x in xs), *additional_inputs))
        carried = list(found[: len(init)])
        rows.append(found[len(init) :])
    return (*carried, *(torch.stack(list(column)) for column in zip(*rows)))


def _map(function: Callable, xs: list, pos_args: Any = ()) -> tuple:
    """The stacked results of a function of rows."""
    rows = [_results(function(*(x[i] for x in xs), *pos_args)) for i in range(xs[0].shape[0])]
    return tuple(torch.stack(list(column)) for column in zip(*rows))


def _with_grad_enabled(enabled: bool, function: Callable, *args: Any) -> Any:
    """The results of a function with gradients enabled or not."""
    with set_grad_enabled(enabled):
        return function(*args)


_COND, _WHILE_LOOP = HigherOrderOperator("cond", _cond), HigherOrderOperator("while_loop", _while_loop)
_SCAN, _MAP = HigherOrderOperator("scan", _scan), HigherOrderOperator("map_impl", _map)
WRAP_WITH_SET_GRAD_ENABLED = HigherOrderOperator("wrap_with_set_grad_enabled", _with_grad_enabled)


def cond(pred: Any, true_fn: Callable, false_fn: Callable, operands: tuple | list = ()) -> Any:
    """Returns true_fn(*operands) if pred is true, else false_fn(*operands). Waits for a tensor's value.

    In torch.export, the graphs of both functions are recorded.

    Args:
        pred: a bool, a number, a comparison of sizes, or a tensor with one element.
        operands: tensors, in nested lists, tuples and dicts.
    """
    if type(pred) is SymBool:
        return _COND(pred, true_fn, false_fn, tuple(operands))
    if isinstance(pred, (bool, int, float)):
        return true_fn(*operands) if pred else false_fn(*operands)
    if not isinstance(pred, Tensor):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)) or not all(isinstance(t, Tensor) for t in pytree.tree_leaves(operands)):
        raise RuntimeError(
            "Expect operands to be a tuple of possibly nested dict/list/tuple that only consists of tensor leaves, but got "
            f"{operands}."
        )
    return _COND(pred, true_fn, false_fn, tuple(operands))


def while_loop(cond_fn: Callable, body_fn: Callable, carried_inputs: tuple | list) -> tuple:
    """Replaces the values by body_fn(*values) while cond_fn(*values) is true. Waits for each condition.

    In torch.export, the graphs of both functions are recorded.
    """
    return _WHILE_LOOP(cond_fn, body_fn, tuple(carried_inputs))


def scan(combine_fn: Callable, init: Any, xs: Any, *, dim: int = 0, reverse: bool = False) -> tuple[Any, Any]:
    """Calls combine_fn(carried, x) for each slice x of xs, with the value that the former call returned as `carried`.

    Args:
        combine_fn: returns the next carried value, like `init`, and a result for this slice.
        init: the first carried value: tensors in nested lists, tuples and dicts.
        xs: tensors, in containers, with the same size along `dim`.
        dim: the dimension of the slices.
        reverse: begin at the last slice.

    Returns:
        the last carried value, and the results of all slices, stacked along dimension `dim`, or 0 if they have fewer dimensions.
    """
    carried, init_spec = pytree.tree_flatten(init)
    leaves, xs_spec = pytree.tree_flatten(xs)
    if not leaves or not carried:
        raise RuntimeError("scan() operator requires initial values and tensors to scan over.")
    dim = dim % leaves[0].dim() if leaves[0].dim() else dim
    rows = [x.movedim(dim, 0) for x in leaves]
    rows = [x.flip(0) for x in rows] if reverse else rows
    if len({hint(x.size(0)) for x in rows}) > 1 or hint(rows[0].size(0)) == 0:
        raise RuntimeError(f"[scan] expected the same size, at least 1, along dim {dim}, got {[tuple(x.shape) for x in leaves]}")
    specs: list[Any] = []

    def combine(*values: Tensor) -> tuple:
        a, b = list(values[: len(carried)]), list(values[len(carried) : len(carried) + len(rows)])
        new, result = combine_fn(pytree.tree_unflatten(a, init_spec), pytree.tree_unflatten(b, xs_spec))
        found, found_spec = pytree.tree_flatten(new)
        if found_spec != init_spec:
            raise RuntimeError(f"[scan] expected combine_fn to return a carried value like init, {init_spec}, got {found_spec}")
        results, result_spec = pytree.tree_flatten(result)
        specs[:] = [result_spec]
        return (*found, *results)

    found = _SCAN(combine, carried, rows, ())
    last, results = list(found[: len(carried)]), list(found[len(carried) :])
    results = [r.flip(0) for r in results] if reverse else results
    results = [r.movedim(0, dim) if 0 < dim < r.dim() else r for r in results]
    return pytree.tree_unflatten(last, init_spec), pytree.tree_unflatten(results, specs[0])


def map(f: Callable, xs: Any, *args: Any) -> Any:  # noqa: A001 - PyTorch's name
    """Calls f(x, *args) for each slice x of xs along dimension 0, and stacks the results.

    Args:
        xs: tensors with the same first size, in nested lists, tuples and dicts.
        args: further arguments of each call: tensors, in containers.
    """
    leaves, xs_spec = pytree.tree_flatten(xs)
    rest, args_spec = pytree.tree_flatten(args)
    if not leaves or not all(isinstance(x, Tensor) and x.dim() for x in leaves):
        raise RuntimeError("[map] expected xs to contain tensors with at least one dimension")
    if len({hint(x.size(0)) for x in leaves}) > 1 or hint(leaves[0].size(0)) == 0:
        raise RuntimeError(f"[map] expected the same first size, at least 1, got {[tuple(x.shape) for x in leaves]}")
    specs: list[Any] = []

    def function(*values: Tensor) -> tuple:
        row = pytree.tree_unflatten(list(values[: len(leaves)]), xs_spec)
        others = pytree.tree_unflatten(list(values[len(leaves) : len(leaves) + len(rest)]), args_spec)
        results, spec = pytree.tree_flatten(f(row, *others))
        specs[:] = [spec]
        return tuple(results)

    return pytree.tree_unflatten(list(_MAP(function, leaves, tuple(rest))), specs[0])
