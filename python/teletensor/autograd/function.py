"""Function: an operation with a gradient of the user's own.

Its backward runs here, in the client, when the engine's pass comes to it; the pass is issued in
pieces around it, so that it waits for nothing but what the user's code reads.
"""

from __future__ import annotations

import functools

from .. import _C
from .._C import Tensor
from .._grad_mode import no_grad, set_grad_enabled


class FunctionCtx:
    """What forward leaves for backward."""

    def __init__(self) -> None:
        self._saved: tuple = ()
        self._constant: set[int] = set()
        self._dirty: set[int] = set()
        self._materialize = True
        self.needs_input_grad: tuple[bool, ...] = ()

    def save_for_backward(self, *tensors) -> None:
        """Keeps inputs or outputs for backward."""
        self._saved = tensors

    @property
    def saved_tensors(self) -> tuple:
        """What save_for_backward kept."""
        return self._saved

    saved_variables = saved_tensors

    def mark_non_differentiable(self, *tensors) -> None:
        """Outputs that get no gradient."""
        self._constant.update(t._handle for t in tensors)

    def mark_dirty(self, *tensors) -> None:
        """Inputs that forward changed in place."""
        self._dirty.update(t._handle for t in tensors)

    def set_materialize_grads(self, value: bool) -> None:
        """Whether gradients that never came are zeros (they always are here)."""
        self._materialize = value



class Function:
    """Subclasses define ``forward(ctx, *args)`` and ``backward(ctx, *grads)``; see torch.autograd.Function."""

    @staticmethod
    def forward(ctx, *args, **kwargs):
        """The computation; unrecorded. Without ctx where the subclass defines setup_context."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        """One gradient, or None, for each argument of forward."""
        raise NotImplementedError("You must implement the backward for your custom autograd.Function.")

    setup_context = None

    @classmethod
    def apply(cls, *args):
        """Runs forward and records it."""
        ctx = FunctionCtx()
        ctx.needs_input_grad = tuple(isinstance(a, Tensor) and a.requires_grad for a in args)
        with no_grad():
            if cls.setup_context is not None:
                result = cls.forward(*args)
                cls.setup_context(ctx, args, result)
            else:
                result = cls.forward(ctx, *args)
        if not (_C.is_grad_enabled() and any(ctx.needs_input_grad)):
            return result
        many = isinstance(result, (tuple, list))
        outputs = [cls._as_output(ctx, r, args) for r in (result if many else [result])]
        recorded = [t for t in outputs if isinstance(t, Tensor) and t.is_floating_point() and t._handle not in ctx._constant]
        if recorded:
            inputs = [a for a in args if isinstance(a, Tensor)]
            _C.custom_function(inputs, recorded, functools.partial(cls._run_backward, ctx, args, len(outputs), [
                i for i, t in enumerate(outputs) if any(t is r for r in recorded)
            ]))  # fmt: skip
        return tuple(outputs) if many else outputs[0]

    @staticmethod
    def _as_output(ctx: FunctionCtx, value, args):
        """An input that is returned as it is becomes a tensor of its own, unless it was changed."""
        if isinstance(value, Tensor) and any(value is a for a in args) and value._handle not in ctx._dirty:
            return value.detach()
        return value

    @classmethod
    def _run_backward(cls, ctx: FunctionCtx, args, count: int, places: list[int], gradients: list, create_graph: bool):
        given = [None] * count
        for place, gradient in zip(places, gradients):
            given[place] = gradient
        with set_grad_enabled(create_graph):
            found = cls.backward(ctx, *given)
        found = list(found) if isinstance(found, (tuple, list)) else [found]
        if len(found) < len(args):
            raise RuntimeError(
                f"function {cls.__name__}Backward returned an incorrect number of gradients "
                f"(expected {len(args)}, got {len(found)})"
            )
        return [g for g, a in zip(found, args) if isinstance(a, Tensor)]


def once_differentiable(function):
    """Marks a backward whose own operations are not recorded."""

    @functools.wraps(function)
    def wrapped(ctx, *args):
        with no_grad():
            return function(ctx, *args)

    return wrapped
