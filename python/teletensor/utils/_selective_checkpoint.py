"""Selective checkpoints: a policy chooses the operators whose results are kept between a checkpoint's runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from .. import _C
from .._C import Tensor
from .._grad_mode import no_grad
from .._library import aten, attention
from .._library.operators import OpOverload
from .._options import check_flags
from ._checkpoint_names import CheckpointPolicy, SelectiveCheckpointContext
from ._python_dispatch import TorchDispatchMode

# The operators that PyTorch's dispatcher calls for one that the engine executes as a whole: policies are written for them.
_PARTS = {
    "attention": ("scaled_dot_product_attention", *attention.OPERATORS), "batch_norm": ("batch_norm", "native_batch_norm"),
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
        return _product(args[0], args[1].t(), *args[2:3])
    if name == "matmul":
        return _product(*args)
    return ((part, args) for part in _PARTS.get(name, ()))


class _FirstRun(TorchDispatchMode):
    """Asks the policy before each operator, and lets the engine keep the results that it chooses."""

    runs_backward = True

    def __init__(self, policy: Callable[..., Any], choices: dict[tuple[Any, int], bool]) -> None:
        super().__init__()
        self._policy, self._choices = policy, choices
        self._counts: Counter[Any] = Counter()

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
            raise NotImplementedError(f"[create_selective_checkpoint_contexts] {policy} is only implemented for compiled functions")
        return policy in (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)

    def _choose(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> bool:
        saves = self._saves(func, args, kwargs)
        for name, values in _parts(func._opname, args):
            packet = aten.packet(name)
            if packet is not None:
                saves |= self._saves(packet.default, values, kwargs if values is args else {})
        return saves

    def __torch_dispatch__(self, func: Any, types: tuple, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        if func._opname == "detach":
            return func(*args, **kwargs)
        with _C.DisableTorchFunction(), no_grad():  # arguments of parts are views
            saves = self._choose(func, args, kwargs)
        self._choices[func, self._counts[func]] = saves
        self._counts[func] += 1
        return _call(saves, func, args, kwargs)


class _NextRun(TorchDispatchMode):
    """Repeats the choices of the first run."""

    runs_backward = True

    def __init__(self, choices: dict[tuple[Any, int], bool]) -> None:
        super().__init__()
        self._choices = choices
        self._counts: Counter[Any] = Counter()

    def __enter__(self) -> _NextRun:
        self._counts.clear()
        super().__enter__()
        return self

    def __torch_dispatch__(self, func: Any, types: tuple, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        if func._opname == "detach":
            return func(*args, **kwargs)
        call = (func, self._counts[func])
        self._counts[func] += 1
        if call not in self._choices:
            raise RuntimeError(
                f"{func} invocation index {call[1]} encountered during backward but not found in storage. This can happen if the "
                "operations in the checkpointed region are nondeterministic or depend on global state that changed between forward "
                "and backward."
            )
        return _call(self._choices[call], func, args, kwargs)


def _call(saves: bool, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    former = _C.keep_results(saves)
    try:
        return func(*args, **kwargs)
    finally:
        _C.keep_results(former)


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
        allow_cache_entry_mutation: has no effect: results that were changed in place are computed again, also those of random
            operators and views. PyTorch raises RuntimeError, or with True uses the changed values.

    Raises:
        NotImplementedError: the policy asks for an offload to the CPU, or reads ctx.op_output.
    """
    check_flags("create_selective_checkpoint_contexts", allow_cache_entry_mutation=allow_cache_entry_mutation)
    if isinstance(policy_fn_or_list, list):
        policy = _policy_of(policy_fn_or_list)
    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    choices: dict[tuple[Any, int], bool] = {}
    return _FirstRun(policy, choices), _NextRun(choices)
