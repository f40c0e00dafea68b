"""Recomputation of activations in backward (Chen et al., "Training deep nets with sublinear memory cost", 2016)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Callable

from .. import _C
from .._C import Tensor
from .._component_tensor import ComponentTensor
from .._grad_mode import enable_grad, is_grad_enabled, no_grad
from .._lazy import set_module
from .._options import check_flags
from .._random import get_rng_state, set_rng_state
from ..amp.autocast_mode import restored
from ..autograd import Function
from ..autograd._saved_tensors import SavedTensor, check_version, is_packing, saved_tensors_hooks
from ..autograd.function import recorder_of
from ._checkpoint_names import CheckpointError, is_debugging, stops_early


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


def _unchanged(saved: tuple[Tensor, int]) -> Tensor:
    check_version(*saved, "a tensor that a custom Function or an inner checkpoint has saved,")
    return saved[0]


class _Complete(BaseException):
    """Ends a function that runs again when it has saved all tensors."""


class _FirstRun(saved_tensors_hooks):
    """A context in which a checkpointed function runs, and nothing is saved for backward.

    Operators of the engine count their calls; what custom Functions save is counted here. The hooks are methods, as bound
    methods in attributes would be a cycle of references.
    """

    def __init__(self, call: _Call, recomputation: _C.Recomputation):
        self._call, self._recomputation = call, recomputation

    def _push(self) -> None:
        self._recomputation.first_run().push()

    def pack_hook(self, _tensor: Tensor) -> int:
        self._call.num_kept += 1
        return self._call.num_kept - 1

    def unpack_hook(self, number: int) -> Tensor:
        kept = self._recomputation.recompute(True)
        if number >= len(kept):
            self._call.fail(f"custom Functions have saved {self._call.num_kept} tensors, and {len(kept)} when it runs again")
        saved, kept[number] = kept[number], None  # freed when its Function has run
        return _unchanged(self._recomputation.recompute(False)[number] if saved is None else saved)


class _NextRun(saved_tensors_hooks):
    """A context in which the function runs again for a backward pass, and tensors are saved for the pass, too."""

    def __init__(self, call: _Call, recomputation: _C.Recomputation):
        self._call = call
        self._run = recomputation.next_run(self._stop)
        self.kept: list[tuple[Tensor, int] | None] = []  # what custom Functions have saved, with its version then

    def _push(self) -> None:
        self._run.push()

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        run, self._run = self._run, None  # ends a cycle of references
        if exc[0] is None:
            run.check_complete()

    def pack_hook(self, tensor: Tensor) -> int:
        self.kept.append((tensor.detach(), tensor._version))
        if self._run.is_complete():
            self._stop()
        return len(self.kept) - 1

    def unpack_hook(self, number: int) -> Tensor:
        saved = self.kept[number]
        if saved is None:
            raise RuntimeError("Trying to read the saved tensors of a checkpoint's second run after backward has used them.")
        return _unchanged(saved)

    def _stop(self) -> None:
        """Ends the run, in which operators have saved all tensors, unless custom Functions have not."""
        if self._call.early_stop and len(self.kept) >= self._call.num_kept:
            raise _Complete


class _Argument:
    """A tensor that a checkpointed function receives; packed if the call is within hooks or another checkpoint.

    Sparse and nested tensors are not packed: hooks receive tensors of the engine only.
    """

    def __init__(self, tensor: Tensor):
        self.requires_grad, self.version = tensor.requires_grad, tensor._version
        packs = is_packing() and not isinstance(tensor, ComponentTensor)
        self.value: Tensor | SavedTensor | None = SavedTensor(tensor, None) if packs else tensor

    def drop_if_changed(self) -> None:
        if isinstance(self.value, Tensor) and self.value._version != self.version:
            self.value = None

    def tensor(self) -> Tensor:
        """The tensor for the next run."""
        if self.value is None:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: a checkpointed "
                "function has changed its argument, and cannot run again"
            )
        if isinstance(self.value, Tensor):
            check_version(self.value, self.version, "an argument of a checkpointed function,")
            return self.value
        with no_grad():
            tensor = self.value.unpack()
        return tensor if tensor.requires_grad == self.requires_grad else tensor.detach().requires_grad_(self.requires_grad)


def _tensor_of(value: Any) -> Any:
    return value.tensor() if isinstance(value, _Argument) else value


class _Call:
    """A call of a checkpointed function, with the random numbers and the autocast of its first run.

    Owned by its Recomputation, to which it must not refer.
    """

    def __init__(
        self, function: Callable, args: tuple, kwargs: dict[str, Any], preserve_rng_state: bool, again: AbstractContextManager,
        early_stop: bool,
    ):  # fmt: skip
        self.function, self.again, self.early_stop = function, again, early_stop
        self.args = [_Argument(a) if isinstance(a, Tensor) else a for a in args]
        self.kwargs = {name: _Argument(a) if isinstance(a, Tensor) else a for name, a in kwargs.items()}
        self.autocast = restored()
        self.random_state = get_rng_state() if preserve_rng_state else None
        self.num_kept = 0  # tensors that custom Functions have saved in the first run
        self.lock = threading.RLock()  # held from the start of a run until the pass has taken what it has saved

    def drop_changed(self) -> None:
        """Drops arguments that the function has changed in place: their history leads to this call."""
        for value in (*self.args, *self.kwargs.values()):
            if isinstance(value, _Argument):
                value.drop_if_changed()

    @contextmanager
    def _random_numbers(self) -> Iterator[None]:
        """A context with the random numbers of the first run."""
        if self.random_state is None:
            yield
            return
        now = get_rng_state()
        set_rng_state(self.random_state)
        try:
            yield
        finally:
            set_rng_state(now)

    def run(self, recomputation: _C.Recomputation) -> list[tuple[Tensor, int] | None]:
        """Runs the function again. Returns what custom Functions have saved. The caller calls end()."""
        self.lock.acquire()
        try:
            args, kwargs = list(map(_tensor_of, self.args)), {name: _tensor_of(a) for name, a in self.kwargs.items()}
            hooks = _NextRun(self, recomputation)
            try:
                with self._random_numbers(), enable_grad(), self.autocast, self.again, hooks:
                    self.function(*args, **kwargs)
            except _Complete:
                pass
            return hooks.kept
        except BaseException:
            self.lock.release()
            raise

    def end(self) -> None:
        """The pass has taken what the run has saved."""
        self.lock.release()

    @staticmethod
    def fail(message: str) -> None:
        raise CheckpointError(
            f"[checkpoint] expected the function to make the same calls when it runs again in backward, but {message}"
        )


class CheckpointFunction(Function):
    """checkpoint(use_reentrant=True), for programs that call apply()."""

    @classmethod
    def apply(cls, run_function: Callable, preserve_rng_state: bool, *args):
        return checkpoint(run_function, *args, use_reentrant=True, preserve_rng_state=preserve_rng_state)


def checkpoint(
    function: Callable = None, *args, use_reentrant: bool | None = None, preserve_rng_state: bool = True, context_fn=None,
    determinism_check: str = "default", debug: bool = False, early_stop: bool = True,
    respect_saved_tensors_hooks: bool | None = None, **kwargs,
):  # fmt: skip
    """Calls function(*args, **kwargs); nothing is saved for backward, which calls the function again.

    The second call has the random numbers, the autocast and the arguments of the first one. Operators must be the same in both.
    In a function that torch.compiler.trace() traces, backward of the Program recomputes them in the engine.

    Args:
        use_reentrant: both variants compute gradients in the same way, also for grad() and second derivatives. Unless it is
            False, nothing is differentiated if no argument requires grad, with a warning.
        context_fn: returns two context managers: one for the first run, one for the runs in backward.
        determinism_check: "default" raises CheckpointError if the runs call different operators; "none" lets only the engine
            check sizes, dtypes and devices of what they save.
        debug: whether the error lists the calls of the first run.
        early_stop: whether a run in backward ends as soon as it has computed what backward needs, if use_reentrant is False.
        respect_saved_tensors_hooks: only None and False: the recomputed tensors are not passed to hooks.

    Raises:
        CheckpointError: the function makes other calls when it runs again.
        RuntimeError: an argument was changed in place before backward.
    """
    if not callable(function):
        raise TypeError(f"checkpoint() expected function to be callable, got {type(function).__name__}")
    check_flags("checkpoint", early_stop=early_stop, debug=debug, preserve_rng_state=preserve_rng_state)
    if respect_saved_tensors_hooks:
        raise NotImplementedError("[checkpoint] expected respect_saved_tensors_hooks to be False, got True")
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ('default', 'none'), but got {determinism_check}")
    if use_reentrant is not False and (context_fn is not None or debug):
        raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
    if _C.is_tracing():
        if context_fn is not None:
            raise NotImplementedError("[checkpoint] context_fn is not supported in a traced function: it runs in the client")
        with _C.TraceRegion():
            return function(*args, **kwargs)
    if not is_grad_enabled() or recorder_of(args) is not None:
        return function(*args, **kwargs)
    if use_reentrant is not False:
        check_backward_validity(args)
        if not any(isinstance(x, Tensor) and x.requires_grad for x in args):
            with no_grad():
                return function(*args, **kwargs)
    first, again = (nullcontext(), nullcontext()) if context_fn is None else context_fn()
    for context in (first, again):
        if hasattr(context, "preserves_random_numbers"):  # of a selective checkpoint
            context.preserves_random_numbers = preserve_rng_state
    call = _Call(function, args, kwargs, preserve_rng_state, again, use_reentrant is False and stops_early(early_stop))
    recomputation = _C.Recomputation(call, determinism_check == "default", is_debugging(debug))
    with first, _FirstRun(call, recomputation):
        result = function(*args, **kwargs)
    call.drop_changed()
    return result


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


set_module("teletensor.utils.checkpoint", CheckpointFunction)
