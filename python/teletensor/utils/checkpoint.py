"""Recomputation of activations in backward (Chen et al., "Training deep nets with sublinear memory cost", 2016)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Callable

from .. import _C
from .._C import Tensor
from .._functions import tensor
from .._grad_mode import enable_grad, is_grad_enabled, no_grad
from .._layouts import require_strided
from .._options import check_flags
from .._random import get_rng_state, set_rng_state
from ..amp.autocast_mode import restored
from ..autograd import Function, grad
from ..autograd import backward as run_backward
from ..autograd.gradients import selects_tensors
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
from ._pytree import tree_flatten, tree_unflatten

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


def _save(ctx, args: tuple) -> None:
    ctx.save_for_backward(*(a for a in args if isinstance(a, Tensor)))
    ctx.arguments = [Tensor if isinstance(a, Tensor) else a for a in args]


def _saved(ctx) -> tuple:
    """The arguments that were saved. Raises RuntimeError if a tensor was changed in place since."""
    tensors = iter(ctx.saved_tensors)
    return tuple(next(tensors) if a is Tensor else a for a in ctx.arguments)


def _differentiated(results: Sequence, inputs: Sequence, grads: Sequence, create_graph: bool = False) -> list[Tensor | None]:
    """The gradient of the results with respect to each input; None if it requires no grad or is not used."""
    pairs = [(r, g) for r, g in zip(results, grads) if isinstance(r, Tensor) and r.requires_grad and g is not None]
    wanted = [t for t in inputs if isinstance(t, Tensor) and t.requires_grad]
    if not pairs or not wanted:
        return [None] * len(inputs)
    found = iter(grad([r for r, _ in pairs], wanted, [g for _, g in pairs], create_graph=create_graph, allow_unused=True))
    return [next(found) if isinstance(t, Tensor) and t.requires_grad else None for t in inputs]


def _places(args: tuple) -> dict[int, int]:
    return {a._handle: i for i, a in enumerate(args) if isinstance(a, Tensor) and a.requires_grad}


def _add_aside(found: list, args: tuple, aside: Sequence[Tensor], start: int) -> None:
    """Adds found[start], found[start + 1]...: gradients of arguments that the function uses by another way as well."""
    places = _places(args)
    for t, g in zip(aside, found[start:]):
        place = places[t._handle]
        found[place] = g if found[place] is None else found[place] if g is None else found[place] + g


def _tensors(values: Any) -> Iterator[Tensor]:
    return (v for v in (values if isinstance(values, (tuple, list)) else (values,)) if isinstance(v, Tensor))


class _Run:
    """A checkpointed function with the random numbers and the autocast of its first run."""

    def __init__(self, function: Callable, preserve_rng_state: bool) -> None:
        self.function, self.autocast = function, restored()
        self.state = get_rng_state() if preserve_rng_state else None

    def noting(self, *args) -> tuple[Any, list[Tensor]]:
        """The result, and the tensors that require grad and that the function uses or returns."""

        def run(*args):
            result = self.function(*args)
            _C.note_tensors(*_tensors(result))
            return result

        return _C.call_noting_tensors(run, *args)

    @contextmanager
    def again(self) -> Iterator[None]:
        """A context in which the function runs again, recorded."""
        now = get_rng_state() if self.state is not None else None
        if self.state is not None:
            set_rng_state(self.state)
        try:
            with enable_grad(), self.autocast:
                yield
        finally:
            if now is not None:
                set_rng_state(now)

    def gradients(self, args: tuple, captured: tuple, given: tuple, create_graph: bool) -> tuple[list, list]:
        """The gradients of the results with respect to the arguments and the captured tensors, for given gradients of the results.

        Also returns the tensors of which they were computed: detached arguments, the captured ones, and those arguments that
        the function uses by another way as well, whose gradients are added.
        """
        detached = detach_variable(args)
        with self.again():
            outputs, used = self.noting(*detached)
        outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        places = _places(args)
        known = {t._handle for t in (*_tensors(detached), *captured)}
        aside = [t for t in used if t._handle in places]
        unknown = len([t for t in used if t._handle not in known and t._handle not in places])
        seen = {t._handle for t in used}
        if unknown > sum(t._handle not in seen for t in captured):  # a function may create tensors and differentiate
            raise RuntimeError(f"{_SELECTS} need a function that uses the same tensors in each run")
        _check_captured(aside)
        inputs = [*detached, *captured, *aside]
        with enable_grad():
            found = _differentiated(outputs, inputs, given, create_graph)
            _add_aside(found, args, aside, len(args) + len(captured))
        return found[: len(args) + len(captured)], inputs


_SELECTS = "[checkpoint] autograd.grad(), backward(inputs=) and create_graph=True"


def _check_captured(captured: Sequence[Tensor]) -> None:
    if not all(t.is_leaf for t in captured):
        raise RuntimeError(f"{_SELECTS} need tensors with a history as arguments of the function, and used as such only")
    if any(map(_C.has_hooks, captured)):
        raise NotImplementedError(f"{_SELECTS} of a function that uses tensors with hooks: the hooks would be called twice")


class CheckpointFunction(Function):
    """Runs a function without recording its graph, and runs it again with recording in backward.

    A pass that accumulates the gradients of all leaves runs backward through the new graph, with the hooks of its tensors. One
    that selects tensors computes the gradients of the arguments, and of the leaves that the function has used.
    """

    _connects = False  # whether results require grad though no argument does

    @staticmethod
    def _inline(run_function: Callable, _preserve_rng_state: bool, *args):
        """The call while operators are recorded as nodes of a graph: nothing is saved."""
        return run_function(*args)

    @classmethod
    def _run_forward(cls, ctx, args: tuple):
        ctx.connects = cls._connects
        return super()._run_forward(ctx, args)

    @staticmethod
    def forward(ctx, run_function: Callable, preserve_rng_state: bool, *args):
        if not ctx.connects:
            check_backward_validity(args)
        ctx.run = _Run(run_function, preserve_rng_state)
        _save(ctx, args)
        with no_grad():
            result, used = ctx.run.noting(*args)
        given = {a._handle for a in _tensors(args)}
        captured = {t._handle: t for t in used if t._handle not in given}

        def apart(value):  # a result that is a tensor of the program is another tensor outside
            return value.detach() if isinstance(value, Tensor) and value._handle in captured else value

        result = type(result)(map(apart, result)) if type(result) in (tuple, list) else apart(result)
        if ctx.connects or any(ctx.needs_input_grad):
            ctx._captured = list(captured.values())
        if ctx.connects and not ctx._captured and not any(ctx.needs_input_grad):
            ctx._captured = [tensor(0.0, requires_grad=True)]  # functions may use parameters in backward only, as those of FSDP do
        return result

    @staticmethod
    def backward(ctx, *grads):
        args, captured, needed = _saved(ctx), ctx._captured, ctx.needs_input_grad[2:]
        if any(needs and not a.requires_grad for a, needs in zip(args, needed) if isinstance(a, Tensor)):  # saved_tensors_hooks
            if is_grad_enabled():
                raise NotImplementedError("[checkpoint] create_graph=True of a checkpoint within saved_tensors_hooks")
            args = tuple(a.detach().requires_grad_() if needs else a for a, needs in zip(args, needed))
        if is_grad_enabled() or selects_tensors():
            _check_captured(captured)
            return None, None, *_Gradients.apply(ctx.run, len(args), len(captured), *args, *captured, *grads)
        inputs = detach_variable(args)
        with ctx.run.again():
            outputs = ctx.run.function(*inputs)
        outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        pairs = [(o, g) for o, g in zip(outputs, grads) if isinstance(o, Tensor) and o.requires_grad]
        if pairs:
            run_backward([o for o, _ in pairs], [g for _, g in pairs])
        elif not ctx.connects:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        return (None, None, *(x.grad if isinstance(x, Tensor) else None for x in inputs), *(None for _ in captured))


class _ConnectingCheckpoint(CheckpointFunction):
    _connects = True


class _Gradients(Function):
    """The gradients of a checkpointed function with respect to its arguments and the leaves that it uses."""

    @staticmethod
    def forward(ctx, run: _Run, count: int, captured: int, *args):
        ctx.run, ctx.counts = run, (count, count + captured)
        _save(ctx, args)
        return tuple(_Gradients._first(ctx, args, create_graph=False)[0])

    @staticmethod
    def _first(ctx, args: tuple, create_graph: bool) -> tuple[list, list]:
        count, end = ctx.counts
        return ctx.run.gradients(args[:count], args[count:end], args[end:], create_graph)

    @staticmethod
    def backward(ctx, *grads):
        if is_grad_enabled():
            raise NotImplementedError("[checkpoint] third derivatives of a checkpointed function")
        count, end = ctx.counts
        args = _saved(ctx)
        given = detach_variable(args[end:])
        first, inputs = _Gradients._first(ctx, (*args[:end], *given), create_graph=True)
        found = _differentiated(first, (*inputs, *given), grads)
        _add_aside(found, args[:count], inputs[end:], end)
        return None, None, None, *found[:end], *found[len(inputs) :]


class _Flattened:
    """A function that returns the parts of the other one's result in a tuple."""

    def __init__(self, function: Callable) -> None:
        self.function, self.spec = function, None

    def __call__(self, *args) -> tuple:
        leaves, spec = tree_flatten(self.function(*args))
        self.spec = spec if self.spec is None else self.spec
        return tuple(leaves)

    def restored(self, leaves: tuple) -> Any:
        """The result of the first call with other parts."""
        return tree_unflatten(list(leaves), self.spec)


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

    kind = _ConnectingCheckpoint if use_reentrant is False else CheckpointFunction
    flattened = _Flattened(function)
    return flattened.restored(kind.apply(flattened, preserve_rng_state, *args))


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
