"""Recomputation of activations in backward (Chen et al., "Training deep nets with sublinear memory cost", 2016)."""

from __future__ import annotations

import itertools
from typing import Callable

from .. import _C
from .._C import Tensor
from .._functions import tensor
from .._grad_mode import enable_grad, no_grad
from .._layouts import require_strided
from .._options import check_flags
from .._random import get_rng_state, set_rng_state
from ..amp.autocast_mode import restored
from ..autograd import Function
from ..autograd import backward as run_backward
from ._checkpoint_names import (  # noqa: F401 - PyTorch defines them here
    SAC_IGNORED_OPS,
    CheckpointError,
    CheckpointPolicy,
    DefaultDeviceType,
    GraphExecGroup,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
    noop_context_fn,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)  # fmt: skip

__all__ = [
    "CheckpointError", "CheckpointFunction", "CheckpointPolicy", "DefaultDeviceType", "SelectiveCheckpointContext",
    "check_backward_validity", "checkpoint", "checkpoint_sequential", "create_selective_checkpoint_contexts", "detach_variable",
    "get_device_states", "noop_context_fn", "set_checkpoint_debug_enabled", "set_checkpoint_early_stop", "set_device_states",
]  # fmt: skip


def detach_variable(inputs: tuple) -> tuple:
    """Detaches the tensors from their graphs and keeps their requires_grad."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


def check_backward_validity(inputs) -> None:
    """Warns if no input requires grad: gradients would not reach the checkpointed function."""
    if not any(isinstance(x, Tensor) and x.requires_grad for x in inputs):
        import warnings

        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=3)


def get_device_states(*args) -> tuple[list[int], list[Tensor]]:
    """Returns ([], []): a session has one generator for all devices."""
    return [], []


def set_device_states(devices, states, *, device_type=None) -> None:
    """Has no effect: a session has one generator for all devices."""


class CheckpointFunction(Function):
    """Runs a function without recording its graph, and runs it again with recording in backward."""

    @staticmethod
    def forward(ctx, run_function: Callable, preserve_rng_state: bool, *args):
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.state = get_rng_state() if preserve_rng_state else None
        ctx.inputs = args
        ctx.autocast = restored()
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx, *grads):
        inputs = detach_variable(ctx.inputs)
        now = get_rng_state() if ctx.state is not None else None
        if ctx.state is not None:
            set_rng_state(ctx.state)
        try:
            with enable_grad(), ctx.autocast:
                outputs = ctx.run_function(*inputs)
        finally:
            if now is not None:
                set_rng_state(now)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        pairs = [(o, g) for o, g in zip(outputs, grads) if isinstance(o, Tensor) and o.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        run_backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *(x.grad if isinstance(x, Tensor) else None for x in inputs))


def _in_contexts(function: Callable, first, again) -> Callable:
    runs = itertools.chain([first], itertools.repeat(again))

    def run(*args, **kwargs):
        with next(runs):
            return function(*args, **kwargs)

    return run


def checkpoint(
    function: Callable = None, *args, use_reentrant: bool | None = None, preserve_rng_state: bool = True, context_fn=None,
    determinism_check: str = "default", debug: bool = False, early_stop: bool = True,
    respect_saved_tensors_hooks: bool | None = None, **kwargs,
):  # fmt: skip
    """Calls function(*args); intermediate results are not stored but recomputed in backward.

    In a function that torch.compiler.trace() traces, backward of the Program recomputes them in the engine. Random numbers
    are kept.

    Args:
        context_fn: returns two context managers: one for the first run, one for the runs in backward.
        early_stop: has no effect: the engine drops what is recomputed but not needed.
        respect_saved_tensors_hooks: only None and False: the recomputed tensors are not passed to hooks.
    """
    if not callable(function):
        raise TypeError(f"checkpoint() expected function to be callable, got {type(function).__name__}")
    check_flags("checkpoint", early_stop=early_stop)
    if respect_saved_tensors_hooks:
        raise NotImplementedError("[checkpoint] expected respect_saved_tensors_hooks to be False, got True")
    require_strided("utils.checkpoint", *args, *kwargs.values())
    if _C.is_tracing():
        if context_fn is not None:
            raise NotImplementedError("[checkpoint] context_fn is not supported in a traced function: it runs in the client")
        with _C.TraceRegion():
            return function(*args, **kwargs)
    if context_fn is not None:
        if use_reentrant is not False:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        function = _in_contexts(function, *context_fn())
    if kwargs:
        inner = function

        def function(*positional):
            return inner(*positional, **kwargs)

    if use_reentrant is False and not any(isinstance(x, Tensor) and x.requires_grad for x in args):
        # Parameters in the function may require gradients even if no input does; an extra input connects the graph.
        carrier = tensor(0.0, requires_grad=True)
        return CheckpointFunction.apply(lambda _, *rest: function(*rest), preserve_rng_state, carrier, *args)
    return CheckpointFunction.apply(function, preserve_rng_state, *args)


def checkpoint_sequential(functions, segments: int, input, use_reentrant: bool | None = None, **kwargs):
    """Runs a Sequential or list of functions in `segments` segments. All segments except the last are checkpointed."""
    functions = list(functions.children()) if hasattr(functions, "children") else list(functions)

    def run(first: int, last: int):
        def forward(x):
            for f in functions[first:last]:
                x = f(x)
            return x

        return forward

    size, start = len(functions) // segments, 0
    if size == 0:
        raise ValueError(f"[checkpoint_sequential] expected at most {len(functions)} segments, got {segments}")
    for _ in range(segments - 1):
        input = checkpoint(run(start, start + size), input, use_reentrant=use_reentrant, **kwargs)
        start += size
    return run(start, len(functions))(input)
