"""Selective checkpoints: a policy chooses the operators whose results are kept between a checkpoint's runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .. import _C
from .._C import Tensor
from .._grad_mode import no_grad
from .._library import aten, attention
from .._library.dispatch import engine_call
from .._library.engine_operators import operator_named
from .._library.kept_results import kernels_run_by
from .._library.operators import OpOverload
from .._options import check_flags
from .._random import get_rng_state, set_rng_state
from ..autograd._saved_tensors import check_version
from ._checkpoint_names import CheckpointPolicy, SelectiveCheckpointContext
from ._python_dispatch import TorchDispatchMode
from ._pytree import tree_flatten, tree_unflatten

# The operators that PyTorch's dispatcher calls for one that the engine executes as a whole: policies are written for them.
_PARTS = {
    "attention": ("scaled_dot_product_attention", *attention.OPERATORS), "attention_forward": (*attention.OPERATORS,),
    "batch_norm": ("batch_norm", "native_batch_norm"),
    "conv1d": ("convolution",), "conv2d": ("convolution",), "conv3d": ("convolution",), "conv_transpose1d": ("convolution",),
    "conv_transpose2d": ("convolution",), "conv_transpose3d": ("convolution",),
    "cross_entropy": ("cross_entropy_loss", "_log_softmax"), "dropout": ("native_dropout",), "group_norm": ("native_group_norm",),
    "layer_norm": ("native_layer_norm",), "log_softmax": ("_log_softmax",), "max_pool2d": ("max_pool2d_with_indices",),
    "nll_loss": ("nll_loss_forward",), "softmax": ("_softmax",),
}  # fmt: skip

__all__ = ["create_selective_checkpoint_contexts"]


class _Context(SelectiveCheckpointContext):
    def __init__(self) -> None:
        self.is_recompute = False

    @property
    def op_output(self) -> Any:
        raise NotImplementedError(
            "[create_selective_checkpoint_contexts] expected a policy that does not read op_output: the engine keeps a result when it "
            "computes it, so the policy is asked before"
        )


def _product(a: Tensor, b: Tensor, bias: Tensor | None = None) -> Iterator[tuple[str, tuple]]:
    if a.dim() > 2 and b.dim() == 2 and a.is_contiguous():
        a = a.flatten(0, -2)
    kind = "addmm" if bias is not None else {(1, 1): "dot", (2, 1): "mv", (2, 2): "mm"}.get((a.dim(), b.dim()), "bmm")
    yield kind, (a, b) if bias is None else (bias, a, b)


def _parts(name: str, args: tuple) -> Iterator[tuple[str, tuple]]:
    """The names and arguments of the operators that PyTorch would call."""
    if name == "linear" and len(args) >= 2 and args[1].dim() == 2:
        return _product(args[0] if args[0].dim() > 1 else args[0][None], args[1].t(), *args[2:3])
    if name == "matmul":
        return _product(*args)
    return ((part, args) for part in _PARTS.get(name, ()))


class _Kept:
    """Results that the client keeps between the runs: those without a gradient, and those of custom operators' kernels."""

    def __init__(self, result: Any, may_draw: bool) -> None:
        values, self._structure = tree_flatten(result)
        self._values = [(v.detach(), v._version) if isinstance(v, Tensor) else (v, 0) for v in values]
        self._random_state = get_rng_state() if may_draw else None  # as the operator has left it

    def take(self, allows_changes: bool) -> Any:
        """The results, for a next run."""
        if self._random_state is not None:
            set_rng_state(self._random_state)
        for value, version in self._values:
            if isinstance(value, Tensor) and value._version != version and not allows_changes:
                raise RuntimeError(
                    "Tensor cached during selective activation checkpoint has been mutated. Pass allow_cache_entry_mutation=True to "
                    "create_selective_checkpoint_contexts to use the changed values."
                )
        return tree_unflatten([v.detach() if isinstance(v, Tensor) else v for v, _ in self._values], self._structure)


class _Choice:
    """Whether a call is saved, and what the client keeps of it, in the order of its kernels."""

    def __init__(self, saves: bool) -> None:
        self.saves = saves
        self.kernels: list[_Kept] = []
        self.result: _Kept | None = None
        # Of the generator before the call, if it may draw numbers, is executed again, and the next run does not begin with the
        # state of the first one.
        self.random_state: Tensor | None = None


class _Choices:
    """The choices of a first run, by operator and the number of its call; owned by the checkpoint's contexts."""

    def __init__(self) -> None:
        self.by_call: dict[tuple[Any, int], _Choice] = {}
        self.parameters: dict[int, tuple[Tensor, int]] = {}  # leaves that the calls read, with their versions

    def note_parameters(self, values: Any) -> None:
        for value in tree_flatten(values)[0]:
            if isinstance(value, Tensor) and value.requires_grad and value.is_leaf:
                self.parameters.setdefault(id(value), (value, value._version))

    def check_parameters(self) -> None:
        """Results that are kept would not fit those that are computed again."""
        if any(choice.saves for choice in self.by_call.values()):
            for parameter, version in self.parameters.values():
                check_version(parameter, version, "a parameter of a function under a selective checkpoint,")


def _has_gradient(values: Any) -> bool:
    return any(isinstance(v, Tensor) and v.requires_grad for v in tree_flatten(values)[0])


@contextmanager
def _generator_at(state: Tensor | None) -> Iterator[None]:
    """A context in which the generator continues from a state; None: from its own."""
    if state is None:
        yield
        return
    now = get_rng_state()
    set_rng_state(state)
    try:
        yield
    finally:
        set_rng_state(now)


class _Run(TorchDispatchMode):
    """A run of the function; receives its operators."""

    runs_backward = True
    preserves_random_numbers = True  # whether the next run draws the numbers of the first one; set by checkpoint()

    def __init__(self, choices: _Choices) -> None:
        super().__init__()
        self._choices = choices
        self._counts: Counter[Any] = Counter()
        self._depth = 0  # of the checkpoint's run among the hooks of saved tensors

    def __enter__(self) -> _Run:
        self._counts.clear()
        self._depth = _C.num_saved_hooks()
        super().__enter__()
        return self

    def __torch_dispatch__(self, func: Any, types: tuple, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        if func._opname == "detach":
            return func(*args, **kwargs)
        call = (func, self._counts[func])
        self._counts[func] += 1
        return self._run(call, args, kwargs)

    def _run(self, call: tuple[Any, int], args: tuple, kwargs: dict[str, Any]) -> Any:
        raise NotImplementedError

    def _call(self, saves: bool, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Calls the operator; the engine keeps its results, or uses those that it has kept."""
        former = _C.keep_results(self._depth, saves)
        try:
            return func(*args, **kwargs)
        finally:
            _C.keep_results(self._depth, former)


class _FirstRun(_Run):
    """Asks the policy before each operator."""

    def __init__(self, policy: Callable[..., Any], choices: _Choices) -> None:
        super().__init__(choices)
        self._policy = policy

    def __enter__(self) -> _FirstRun:
        if self._choices.by_call:
            raise RuntimeError(
                "[create_selective_checkpoint_contexts] expected new contexts for each checkpoint, got those of another one; pass a "
                "function that creates them, such as functools.partial(create_selective_checkpoint_contexts, policy)"
            )
        super().__enter__()
        return self

    def _saves(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> bool:
        policy = self._policy(_Context(), func, *args, **kwargs)
        if isinstance(policy, bool):
            return policy
        if not isinstance(policy, CheckpointPolicy):
            raise TypeError(
                f"[create_selective_checkpoint_contexts] expected the policy to return a CheckpointPolicy or a bool, got "
                f"{type(policy).__name__} for {func}"
            )
        if policy in (CheckpointPolicy.MUST_CPU_OFFLOAD, CheckpointPolicy.PREFER_CPU_OFFLOAD):
            raise NotImplementedError(f"[create_selective_checkpoint_contexts] {policy} is not implemented")
        return policy in (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)

    def _choose(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> bool:
        saves = self._saves(func, args, kwargs)
        for name, values in _parts(func._opname, args):
            packet = aten.packet(name)
            if packet is not None:
                saves |= self._saves(packet.default, values, kwargs if values is args else {})
        return saves

    def _run(self, call: tuple[Any, int], args: tuple, kwargs: dict[str, Any]) -> Any:
        func = call[0]
        engine = engine_call(args)
        with _C.DisableTorchFunction(), no_grad():  # arguments of parts are views
            saves = self._choose(func, args, kwargs)
        choice = self._choices.by_call[call] = _Choice(saves)
        self._choices.note_parameters((args, kwargs))
        is_random = engine is not None and operator_named(engine[0]).is_random
        may_draw = is_random or (saves and engine is None)
        before = get_rng_state() if may_draw and not self.preserves_random_numbers else None
        if not saves:
            choice.random_state = before  # it may be a part of an operator that the policy names
            return self._call(False, func, args, kwargs)
        writes = func._schema.is_mutable if engine is None else engine[2] is not None

        def around(kernel: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
            result = kernel(*args, **kwargs)
            if not writes:
                choice.kernels.append(_Kept(result, self.preserves_random_numbers))
            return result

        with kernels_run_by(around):
            result = self._call(True, func, args, kwargs)
        if not (writes or choice.kernels or _has_gradient(result)):
            choice.result = _Kept(result, may_draw and self.preserves_random_numbers)
        elif not choice.kernels:
            choice.random_state = before
        return result


class _NextRun(_Run):
    """Repeats the choices of the first run."""

    def __init__(self, choices: _Choices, allows_changes: bool) -> None:
        super().__init__(choices)
        self._allows_changes = allows_changes

    def __enter__(self) -> _NextRun:
        self._choices.check_parameters()
        super().__enter__()
        return self

    def _run(self, call: tuple[Any, int], args: tuple, kwargs: dict[str, Any]) -> Any:
        choice = self._choices.by_call.get(call)
        if choice is None:
            raise RuntimeError(
                f"{call[0]} invocation index {call[1]} encountered during backward but not found in storage. This can happen if the "
                "operations in the checkpointed region are nondeterministic or depend on global state that changed between forward "
                "and backward."
            )
        if choice.result is not None:
            return choice.result.take(self._allows_changes)
        if not choice.kernels:
            with _generator_at(choice.random_state):
                return self._call(choice.saves, call[0], args, kwargs)
        kernels = iter(choice.kernels)
        with kernels_run_by(lambda *_: next(kernels).take(self._allows_changes)):
            return self._call(True, call[0], args, kwargs)


def _policy_of(operators: list) -> Callable[..., CheckpointPolicy]:
    for operator in operators:
        if not isinstance(operator, OpOverload):
            is_packet = hasattr(operator, "overloads")
            name = f"torch.ops.{operator}".replace("::", ".") if is_packet else ""
            hint = f" Name an overload of it: {name}.default instead of {name}." if is_packet else ""
            raise ValueError(
                f"Expected op in `op_list` to be an OpOverload but got: {operator} of type {type(operator)}.{hint}"
            )
    chosen = frozenset(operators)
    return lambda _context, op, *_args, **_kwargs: (
        CheckpointPolicy.MUST_SAVE if op in chosen else CheckpointPolicy.PREFER_RECOMPUTE
    )


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Callable[..., Any] | list, allow_cache_entry_mutation: bool = False
) -> tuple[TorchDispatchMode, TorchDispatchMode]:  # fmt: skip
    """Returns the contexts of a checkpoint whose runs in backward use results of the first run: checkpoint's context_fn.

    The engine keeps these results until backward, and does not compute them again. Composite operators are also offered to the
    policy as the operators that PyTorch calls for them: linear as addmm or mm, attention as its kernels.

    Args:
        policy_fn_or_list: the overloads of torch.ops whose results are kept, or policy(ctx, op, *args, **kwargs), which returns a
            CheckpointPolicy or a bool, before the operator runs.
        allow_cache_entry_mutation: whether results without a gradient, and those of custom operators, may be changed in place
            before backward, which then uses the changed values. Other results that were changed are computed again, and so are
            views, conversions to another dtype and random numbers.

    Raises:
        NotImplementedError: the policy asks for an offload to the CPU, or reads ctx.op_output.
        RuntimeError: in backward, if the function calls other operators, or if a parameter was changed in place.
    """
    check_flags("create_selective_checkpoint_contexts", allow_cache_entry_mutation=allow_cache_entry_mutation)
    if isinstance(policy_fn_or_list, list):
        policy = _policy_of(policy_fn_or_list)
    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    choices = _Choices()
    return _FirstRun(policy, choices), _NextRun(choices, allow_cache_entry_mutation)
