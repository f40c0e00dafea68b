"""Names of torch.autograd.graph: hooks of several tensors, and hooks that the engine's tape does not support."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Callable, NamedTuple

from .. import _C
from .._C import Tensor
from .._grad_mode import no_grad
from .._lazy import set_module
from ._passes import current_pass


class GradientEdge(NamedTuple):
    """A node and the number of its output."""

    node: Any
    output_nr: int
    ownership_token: Any = None


def tensor_of(value: Any) -> Any:
    """The tensor of a gradient edge; returns other values unchanged."""
    if not isinstance(value, GradientEdge):
        return value
    if isinstance(value.ownership_token, Tensor):
        return value.ownership_token
    tensor = value.node._tensor()  # of whose grad_fn a program has made the edge
    node, output = (None, 0) if tensor is None else _C.grad_node(tensor)
    if node is None or node.key() != value.node._node.key() or output != value.output_nr:
        raise RuntimeError("expected a GradientEdge of get_gradient_edge(), or of the grad_fn of a tensor that exists")
    return tensor


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Marks tensors as changed in place: backward passes that saved them raise."""
    with no_grad():
        for t in [tensor] if isinstance(tensor, Tensor) else tensor:
            t.copy_(t.detach().clone())


def queue_callback(callback: Callable[[], None]) -> None:
    """Calls a function at the end of the current backward pass. May be called in hooks only."""
    calls = current_pass()
    if calls is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    calls.append(callback)


# -- hooks of several tensors


class _MultiHandle:
    """Removes several hooks."""

    def __init__(self, handles: tuple):
        self.handles = handles

    def remove(self) -> None:
        """Removes the hooks."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> _MultiHandle:
        return self

    def __exit__(self, *exc) -> None:
        self.remove()


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable, *, mode: str = "all") -> _MultiHandle:
    """Calls a function once per backward pass with the gradients of several tensors.

    Args:
        fn: receives the list of gradients, None for tensors that the pass does not reach; in mode "any", one gradient.
        mode: "all": at the end of the pass, if it reaches any of the tensors. "any": when the first gradient is computed.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    tensors = list(tensors)
    seen: list[Any] = []  # the passes that have called a hook: (calls at the end of the pass, gradients by position)

    def found() -> tuple[list, dict, bool]:
        calls = current_pass()
        for known, gradients in seen:
            if known is calls:
                return calls, gradients, False
        entry = (calls, {})
        seen[:] = [e for e in seen if e[0] is not None][-16:] + [entry]  # removes entries of passes that have ended
        return calls, entry[1], True

    def forget(calls: list) -> None:
        seen[:] = [entry for entry in seen if entry[0] is not calls]

    def hook_all(position: int, gradient: Tensor) -> None:
        calls, gradients, first = found()
        gradients[position] = gradient

        def finish() -> None:
            forget(calls)
            fn([gradients.get(i) for i in range(len(tensors))])

        if first:
            calls.append(finish)

    def hook_any(_position: int, gradient: Tensor) -> None:
        calls, _, first = found()
        if first:
            calls.append(lambda: forget(calls))
            fn(gradient)

    if mode == "all" and not all(t.requires_grad for t in tensors):
        raise AssertionError("Expected gradient function to be set")
    run = hook_all if mode == "all" else hook_any
    pairs = [(i, t) for i, t in enumerate(tensors) if t.requires_grad]
    return _MultiHandle(tuple(t.register_hook(lambda g, i=i: run(i, g)) for i, t in pairs))


# -- names that have no effect or are not supported


def region_activation_memory_budget(budget: float):
    """Raises RuntimeError, as PyTorch does outside of compiled functions."""
    name = "torch.autograd.graph.region_activation_memory_budget"
    if isinstance(budget, bool) or not isinstance(budget, (int, float)):
        raise TypeError(f"{name}: expects a float, got {type(budget).__name__}")
    if not 0.0 <= budget <= 1.0:
        raise ValueError(f"{name}: must be in [0, 1], got {budget}")
    raise RuntimeError(f"{name} can only be used inside a torch.compile region; it has no effect in eager mode.")


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Has no effect: a session computes in one stream per GPU, so streams cannot differ and there is no warning."""


def set_override_stale_capture_stream(enabled: bool) -> None:
    """Raises NotImplementedError if enabled: graph capture does not depend on the streams of a backward pass."""
    if enabled:
        raise NotImplementedError("set_override_stale_capture_stream(True): a session computes in one stream per GPU")


set_module("teletensor.autograd.graph", GradientEdge)
