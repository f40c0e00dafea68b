"""Function: an operation with a user-defined gradient.

The user's backward runs in the client. The client issues the engine's backward pass in pieces, each of which ends where
a user-defined backward runs, and waits only for values that the user's code reads.
"""

from __future__ import annotations

import functools

from .. import _C
from .._C import Tensor
from .._grad_mode import no_grad, set_grad_enabled


class FunctionCtx:
    """The state that Function.forward saves for Function.backward."""

    def __init__(self) -> None:
        self._saved: tuple = ()
        self._constant: set[int] = set()
        self._dirty: set[int] = set()
        self._materialize = True
        self.needs_input_grad: tuple[bool, ...] = ()

    def save_for_backward(self, *tensors) -> None:
        """Saves inputs or outputs for backward."""
        self._saved = tensors

    @property
    def saved_tensors(self) -> tuple:
        """The tensors passed to save_for_backward."""
        return self._saved

    saved_variables = saved_tensors

    def mark_non_differentiable(self, *tensors) -> None:
        """Marks outputs that get no gradient."""
        self._constant.update(t._handle for t in tensors)

    def mark_dirty(self, *tensors) -> None:
        """Marks inputs that forward changed in place."""
        self._dirty.update(t._handle for t in tensors)

    def set_materialize_grads(self, value: bool) -> None:
        """Has no effect: missing gradients of differentiable outputs are always zeros."""
        self._materialize = value



class Function:
    """Subclasses define ``forward(ctx, *args)`` and ``backward(ctx, *grads)``; see torch.autograd.Function."""

    @staticmethod
    def forward(ctx, *args, **kwargs):
        """Computes the outputs; nothing is recorded. Called without ctx if the subclass defines setup_context."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        """Returns one gradient, or None, for each argument of forward."""
        raise NotImplementedError("You must implement the backward for your custom autograd.Function.")

    setup_context = None

    @classmethod
    def apply(cls, *args):
        """Runs forward and records the operation."""
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
        """Detaches an input that is returned unchanged, unless it was marked dirty."""
        if isinstance(value, Tensor) and any(value is a for a in args) and value._handle not in ctx._dirty:
            return value.detach()
        return value

    @classmethod
    def _run_backward(cls, ctx: FunctionCtx, args, count: int, indices: list[int], gradients: list, create_graph: bool):
        output_gradients = [None] * count
        for index, gradient in zip(indices, gradients):
            output_gradients[index] = gradient
        with set_grad_enabled(create_graph):
            found = cls.backward(ctx, *output_gradients)
        found = list(found) if isinstance(found, (tuple, list)) else [found]
        if len(found) < len(args):
            raise RuntimeError(
                f"function {cls.__name__}Backward returned an incorrect number of gradients "
                f"(expected {len(args)}, got {len(found)})"
            )
        return [g for g, a in zip(found, args) if isinstance(a, Tensor)]


def once_differentiable(function):
    """Wraps a backward function so that its operations are not recorded."""

    @functools.wraps(function)
    def wrapped(ctx, *args):
        with no_grad():
            return function(ctx, *args)

    return wrapped
