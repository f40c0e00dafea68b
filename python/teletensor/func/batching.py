"""vmap: maps a function over a batch.

The function runs once, with tensors that have one entry's sizes and the values of all entries (_batched.py). Operators
compute all entries at once; those without a rule (_batch_rules.py) are called once per entry, and say so once.
"""

from __future__ import annotations

from functools import wraps
from typing import Any, Callable

from .. import _C
from .._functorch import vmap as steps
from .._library.dispatch import engine_call
from .._library.engine_operators import operator_named
from ..utils._python_dispatch import TorchDispatchMode
from ._batched import VmapLevel, draw, draws
from ._nested_batches import map_constituents, maps_nested
from ._sparse_batches import narrowed
from ._transformed import Transformed, compute, innermost


class RandomMode(TorchDispatchMode):
    """Random operators in a function that is mapped, also without mapped arguments, such as torch.rand()."""

    runs_backward = True  # handlers need not see the operators of backward passes

    def __init__(self, level: VmapLevel):
        super().__init__()
        self._level = level

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        call = engine_call(args)
        if call is not None and draws(op := operator_named(call[0]), call[1]):
            inner = innermost([*call[1], *(call[2] or ())])
            if inner is not None and inner.number > self._level.number:
                with self:  # for the random operators by which it computes this one
                    return Transformed.__torch_dispatch__(func, types, args, kwargs)
            results = draw(op, call[1], call[2], self._level)
            return results[0] if len(results) == 1 else tuple(results)
        if any(issubclass(t, Transformed) for t in types):
            return Transformed.__torch_dispatch__(func, types, args, kwargs)
        return func(*args, **(kwargs or {}))

    def run_engine_call(self, name: str, arguments: list, into: list | None) -> Any:
        """The same for an operator of the engine, by its own name. Other handlers receive calls without mapped tensors."""
        op, inner = operator_named(name), innermost([*arguments, *(into or ())])
        if draws(op, arguments):
            return NotImplemented
        if inner is not None:
            return compute(name, arguments, into)
        if _C._len_torch_dispatch_stack() or _C._is_dispatched((*arguments, *(into or ()))):
            return NotImplemented
        results = op.call(arguments, into)
        return None if op.num_outputs == 0 else results[0] if op.num_outputs == 1 else tuple(results)


def vmap(
    func: Callable, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Callable:
    """Returns a function that maps `func` over a dimension of its arguments and stacks the results.

    Keyword arguments are not mapped: every entry receives them unchanged. Nested tensors are mapped over their constituents, one
    after another, and results are nested tensors of layout torch.strided. Sparse tensors of layout sparse_coo are mapped over a
    sparse dimension.

    Args:
        in_dims: the mapped dimension of each input, in the arguments' structure; None for an input that is not mapped.
        out_dims: the position of the batch dimension in each output.
        randomness: "error": random operators raise RuntimeError; "different": each entry has its own numbers; "same": all
            entries have the same numbers.
        chunk_size: the number of entries to compute at once; by default all.
    Raises:
        ValueError: an input lacks its mapped dimension, the mapped dimensions' sizes differ, or an
            output with an out_dim of None differs between the entries.
        RuntimeError: `func` reads the values of a mapped tensor, or writes in place to a tensor that is not mapped.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @wraps(func)
    def mapped(*args: Any, **kwargs: Any):
        if maps_nested(in_dims, args):
            return map_constituents(
                lambda part, dims, spec: _run(func, part, dims, spec, kwargs, out_dims, randomness, 1), in_dims, args, out_dims, randomness
            )
        size, dims, given, spec = steps._process_batched_inputs(in_dims, args, func)
        step = chunk_size or max(size, 1)
        outputs = []
        for start in range(0, max(size, 1), step):  # also of an empty batch
            count = min(step, size - start)
            part = given if count == size else [x if d is None else narrowed(x, d, start, count) for x, d in zip(given, dims)]
            outputs.append(_run(func, part, dims, spec, kwargs, out_dims, randomness, count))
        return steps._flatten_chunks_output(outputs, out_dims)

    return mapped


def _run(func: Callable, flat_args: list, dims: list, spec: Any, kwargs: dict, out_dims: Any, randomness: str, size: int) -> Any:
    """Maps over one chunk."""
    with VmapLevel(size, randomness) as level:
        with RandomMode(level):
            output = func(*steps._create_batched_inputs(dims, flat_args, level.depth, spec), **kwargs)
        return steps._unwrap_batched(output, out_dims, level.depth, size, func)
