"""Clears the gradients of many leaves, for optimizers and modules; sparse gradients of strided leaves.

The engine adds strided gradients. A sparse gradient of a strided leaf is an object of this process: functions such as
F.embedding(sparse=True) record it during a backward pass, and the pass adds it at its end.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Iterable

from . import _C
from ._C import Tensor
from ._grad_mode import no_grad

_holders: dict[int, weakref.ref] = {}  # strided leaves whose .grad is sparse
_adding = threading.Lock()  # held while sparse gradients are taken from leaves and added, by passes of several threads
# Hooks of strided leaves by their numbers: the leaf and the function. They are called for sparse gradients too.
leaf_hooks: dict[int, tuple[weakref.ref, Callable]] = {}
# .passes: the SparsePass of each pass of this thread; .leaves: the leaves that received sparse gradients, by id(), since forget_leaves()
_recorded = threading.local()


def hold(leaf: Tensor) -> None:
    """Called by the bindings when the ``.grad`` of a strided leaf becomes sparse."""
    key = id(leaf)
    _holders[key] = weakref.ref(leaf, lambda _: _holders.pop(key, None))


class SparsePass:
    """A context around a backward pass, which collects sparse gradients.

    With ``accumulate``, sparse gradients that leaves already have are removed during the pass, because the engine may add a
    strided one, and added by accumulate().
    """

    def __init__(self, accumulate: bool) -> None:
        self.found: list[tuple[Tensor, Tensor]] = []
        self.hooked: dict[int, bool] = {}  # leaves whose hooks received a strided gradient: whether one changed it
        self._accumulate = accumulate

    def __enter__(self) -> SparsePass:
        if not hasattr(_recorded, "passes"):
            _recorded.passes = []
        self._before = []
        if self._accumulate and _holders:
            with _adding:
                for reference in list(_holders.values()):
                    leaf = reference()
                    if leaf is not None and leaf.grad is not None and _C._is_wrapper(leaf.grad):
                        self._before.append((leaf, leaf.grad))
                        leaf.grad = None
                _holders.clear()
        _recorded.passes.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _recorded.passes.pop()
        if exc[0] is not None:
            self.found.clear()
        self._restore()

    def _restore(self) -> None:
        before, self._before = self._before, []
        self._add(before)

    def _add(self, gradients: list[tuple[Tensor, Tensor]]) -> None:
        if not gradients:
            return
        with _adding, no_grad():
            for leaf, gradient in gradients:
                leaf.grad = gradient if leaf.grad is None else added(leaf.grad, gradient)

    def accumulate(self, inputs: list[Tensor] | None) -> None:
        """Adds the pass's sparse gradients to the leaves' ``.grad``, or only to those of the given leaves.

        Call it before the hooks that receive accumulated gradients.
        """
        self._restore()
        self.call_hooks()
        _recorded.leaves = getattr(_recorded, "leaves", set()) | {id(leaf) for leaf, _ in self.found}
        self._add([(leaf, g) for leaf, g in self.found if inputs is None or any(leaf is t for t in inputs)])

    def call_hooks(self) -> None:
        """Calls the leaves' hooks with the sums of their sparse gradients. Raises NotImplementedError if a hook changed one of a
        sparse and a strided gradient, because it should have received their sum."""
        hooks = [(reference(), hook) for reference, hook in leaf_hooks.values()] if self.found else []
        for leaf in {id(leaf): leaf for leaf, _ in self.found if any(leaf is other for other, _ in hooks)}.values():
            parts = [g for other, g in self.found if other is leaf]
            gradient = received = parts[0] if len(parts) == 1 else functools.reduce(added, parts)
            for hook in [hook for other, hook in hooks if other is leaf]:
                changed = hook(gradient)
                gradient = gradient if changed is None else changed
            if id(leaf) in self.hooked and (self.hooked[id(leaf)] or gradient is not received):
                raise NotImplementedError(
                    "[backward] a hook changed the gradient of a tensor that has a sparse and a strided gradient: it receives them one by "
                    "one, not their sum; create embeddings with sparse=False"
                )
            self.found = [(other, g) for other, g in self.found if other is not leaf] + [(leaf, gradient)]

    def of(self, leaf: Tensor, gradient: Tensor | None) -> Tensor | None:
        """A leaf's gradient of this pass: the strided one, if there is any, and the sparse ones."""
        for other, found in self.found:
            if other is leaf:
                gradient = found if gradient is None else added(gradient, found)
        return gradient


def added(first: Tensor, second: Tensor) -> Tensor:
    """The sum of two gradients; strided if one is."""
    return second + first if _C._is_wrapper(first) and not _C._is_wrapper(second) else first + second


def record(leaf: Tensor, gradient: Tensor) -> None:
    """Records a sparse gradient of a strided leaf in this thread's innermost backward pass."""
    passes = getattr(_recorded, "passes", None)
    if not passes:
        raise RuntimeError("[backward] a sparse gradient can be recorded only during a backward pass")
    passes[-1].found.append((leaf, gradient))


def forget_leaves() -> None:
    """Empties sparse_leaves()."""
    _recorded.leaves = set()


def sparse_leaves() -> set[int]:
    """The leaves to which passes of this thread added sparse gradients since forget_leaves(), by id()."""
    return getattr(_recorded, "leaves", set())


def note_hook(leaf: int, changed: bool) -> None:
    """Notes that a hook of the leaf with this id() received a strided gradient in this thread's innermost backward pass."""
    if passes := getattr(_recorded, "passes", None):
        hooked = passes[-1].hooked
        hooked[leaf] = changed or hooked.get(leaf, False)


def clear(leaves: Iterable[Tensor], set_to_none: bool = True) -> None:
    """Clears the gradients in one instruction or, if ``set_to_none`` is False, fills each with zeros."""
    # A traced function clears them in every run, whether there are any during the trace or not.
    is_traced = set_to_none and _C.is_tracing()
    held = [p for p in leaves if is_traced or p.grad is not None]
    if not held:
        return
    if set_to_none:
        for p in filter(_C._is_wrapper, held):
            p.grad = None
        plain = [p for p in held if not _C._is_wrapper(p)]
        _C.set_grads(plain, [None] * len(plain))
    else:
        # Only a gradient with a history is detached, because a traced function cannot write to what it detaches.
        with no_grad():
            for p in held:
                if p.grad.requires_grad:
                    p.grad = p.grad.detach()
                p.grad.zero_()
