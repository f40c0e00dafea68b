"""Where tensors are saved for backward: saved_tensors_hooks, save_on_cpu and allow_mutation_on_saved_tensors.

The tape is in the engine. Within saved_tensors_hooks, each recorded operation waits for the engine's description of the
tensors that it has saved, which the client then holds as pack_hook returned them; the engine frees its own. The other two
are modes of the engine and wait for nothing.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable

from .. import _C
from .._C import Tensor
from .._grad_mode import no_grad
from .._lazy import set_module

_CLIENT, _ON_CPU, _COPIED = 0, 1, 2  # modes of the operator saved_begin


class _State(threading.local):
    """The calling thread's hooks."""

    def __init__(self) -> None:
        self.hooks: list[saved_tensors_hooks] = []  # innermost last
        self.refusals: list[str] = []  # messages of disable_saved_tensors_hooks, innermost last


_state = _State()


class saved_tensors_hooks:
    """In the ``with`` block, operations pass each tensor that they save for backward to ``pack_hook``.

    Args:
        pack_hook: called with a saved tensor, without recording; must not change it. Returns any object, which is kept in
            place of the tensor.
        unpack_hook: called with that object when backward needs the tensor. Returns a tensor of the same sizes, dtype and
            device and, up to an acceptable error, the same values.

    The innermost hooks apply. Raises RuntimeError on entry within disable_saved_tensors_hooks.
    """

    _mode = _CLIENT

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]):
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self) -> None:
        if _state.refusals:
            raise RuntimeError(_state.refusals[-1])
        for name in ("pack_hook", "unpack_hook"):
            if not callable(getattr(self, name)):
                raise TypeError(f"[saved_tensors_hooks] expected a callable {name}, got {type(getattr(self, name)).__name__}")
        self._push()
        _state.hooks.append(self)

    def _push(self) -> None:
        _C.push_saved_hooks(self._mode, self.pack_hook, self.unpack_hook)

    def __exit__(self, *exc: object) -> None:
        _state.hooks.pop()
        _C.pop_saved_hooks()


class save_on_cpu(saved_tensors_hooks):
    """In the ``with`` block, operations on GPUs save tensors in the CPU's memory of the engine, until backward.

    ``pin_memory`` has no effect: the engine copies from and to its own page-locked memory. Operations on the CPU save
    copies, so the saved tensors may be changed, as in PyTorch.

    Raises:
        NotImplementedError: ``device_type`` is not "cuda".
    """

    _mode = _ON_CPU

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda"):
        if device_type != "cuda":
            raise NotImplementedError(f"[save_on_cpu] expected the device type 'cuda', got {device_type!r}")
        # Called for the tensors that custom Functions save, which this process holds.
        super().__init__(lambda tensor: (tensor.device, tensor.detach().to("cpu", copy=True)), lambda packed: packed[1].to(packed[0]))


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """In the ``with`` block, entering saved_tensors_hooks raises RuntimeError with this message; so does this if it is
    within saved_tensors_hooks."""
    if _state.hooks:
        raise RuntimeError(error_message)
    _state.refusals.append(error_message)
    try:
        yield
    finally:
        _state.refusals.pop()


class _AllowMutationOnSavedContext:
    """What allow_mutation_on_saved_tensors() returns."""

    def clear(self) -> None:
        """Has no effect: the copies belong to the graphs that use them."""


class _copied_saved_tensors(saved_tensors_hooks):
    """The engine saves copies."""

    _mode = _COPIED


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_AllowMutationOnSavedContext]:
    """In the ``with`` block, operations save copies of tensors, which may then be changed in place before backward.

    Unlike in PyTorch, each saved tensor is copied, not only those that are changed, and backward may run outside of the
    block.
    """
    with _copied_saved_tensors(lambda tensor: tensor.detach().clone(), lambda tensor: tensor):
        yield _AllowMutationOnSavedContext()


# -- tensors that Function.save_for_backward saves


def check_version(tensor: Tensor, version: int, what: str) -> None:
    """Raises RuntimeError if the tensor was changed in place since it had this version."""
    if tensor._version != version:
        raise RuntimeError(
            f"one of the variables needed for gradient computation has been modified by an inplace operation: {what} of size "
            f"{list(tensor.shape)} is at version {tensor._version}; expected version {version} instead"
        )


class SavedTensor:
    """A tensor that a Function saves and does not keep itself: hooks have packed it, or it is a result, which owns the Function.

    Args:
        tensor: the tensor.
        place: its number i among the Function's results, ~i for input i, or None. In the Function's backward, the unpacked
            tensor has the history of this place.
    """

    def __init__(self, tensor: Tensor, place: int | None):
        is_result = place is not None and place >= 0
        self.place, self.requires_grad = place, tensor.requires_grad or is_result
        self.hooks = _state.hooks[-1] if _state.hooks else None
        self.original = weakref.ref(tensor) if is_result and self.hooks is None else None
        self.version, self.storage = tensor._version, tensor._storage
        with no_grad():
            kept = tensor.detach() if is_result else tensor
            self.packed = kept if self.hooks is None else self.hooks.pack_hook(kept)
        if tensor._version != self.version:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot be "
                "modified by in-place operations as this can lead to unexpected side-effects. Please open an issue if you need "
                "to perform in-place operations on the input to a pack hook."
            )

    def unpack(self, stop: int = 0) -> Tensor:
        """The tensor, as unpack_hook returns it. `stop` identifies the Function in a backward pass."""
        if self.hooks is None:
            tensor, origin = self.packed, "a saved tensor"
        else:
            tensor, origin = self.hooks.unpack_hook(self.packed), "the tensor that unpack_hook returned"
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(tensor).__name__}"
            )
        if tensor._storage == self.storage:
            check_version(tensor, self.version, origin)
        if not self.requires_grad or tensor.requires_grad:
            return tensor
        found = tensor if self.place is None else _C.history_in_pass(stop, self.place, tensor)
        if found is not tensor:
            return found
        if self.original is not None and (original := self.original()) is not None:
            return original
        if _C.is_grad_enabled():
            raise NotImplementedError(
                "[saved_tensors] the history of a tensor that a custom Function has saved, which is neither its input nor its result, "
                "or is read elsewhere than in its backward"
            )
        return tensor


def is_packing() -> bool:
    """Whether hooks apply to the tensors that this thread saves."""
    return bool(_state.hooks)


set_module("teletensor.autograd.graph", save_on_cpu, saved_tensors_hooks)
