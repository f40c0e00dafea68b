"""Forward and backward of a sharded unit.

A unit either keeps the gathered parameters from forward to backward, or frees them after forward. The engine's tape refers
to the parameters that it needs in backward. Therefore a unit that frees them does not record its forward pass: backward
gathers the parameters again, and runs forward again with recording.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from ... import _C
from ..._C import Tensor
from ..._grad_mode import enable_grad, no_grad
from ..._random import get_rng_state, set_rng_state
from ...autograd import Function
from ...nn.modules.module import Module
from ._nested import tensors_in, with_tensors
from ._unit import ShardedUnit


class Order:
    """The order in which a root's units run, which predicts the next unit to gather."""

    def __init__(self) -> None:
        self._now: list[Runner] = []
        self._before: list[Runner] = []

    def begin(self) -> None:
        """Starts a forward pass of the root."""
        self._before, self._now = self._now, []

    def enter(self, runner: Runner) -> int:
        """Records that a unit runs; returns its position."""
        self._now.append(runner)
        return len(self._now) - 1

    def next(self, position: int) -> Runner | None:
        """The unit that followed in the previous pass, if that pass had the same order until here."""
        if position + 1 < len(self._before) and self._before[position] is self._now[position]:
            return self._before[position + 1]
        return None

    def release_unused(self) -> None:
        """Frees parameters that were gathered in advance for units that did not run."""
        for runner in self._before:
            runner.unit.release()

    def previous(self, position: int) -> Runner | None:
        """The unit that ran before in this pass."""
        return self._now[position - 1] if 0 < position < len(self._now) else None


_root: Runner | None = None  # the unit whose forward pass is the outermost one in progress


class Runner:
    """Runs a module whose parameters are those of a unit.

    Args:
        module: the module.
        unit: its parameters, or None if it has none of its own.
        frees: whether the gathered parameters are freed after forward; requires that no nested module has a unit.
    """

    def __init__(self, module: Module, unit: ShardedUnit | None, frees: bool | None):
        self.module, self.unit = module, unit
        self.frees = frees  # None: true unless this is the root
        self.has_nested_units = False
        self.order = Order()
        self.prefetches_backward = "before"  # "before" or "after" this unit's gradients, or None
        self.is_root: bool | None = None

    def frees_after_forward(self) -> bool:
        if self.unit is None or self.unit.ranks == 1 or self.has_nested_units:
            return False
        return not self.is_root if self.frees is None else self.frees

    def __call__(self, call: Callable, args: tuple, kwargs: dict):
        """Returns ``call(*args, **kwargs)``, which runs the module with the gathered parameters."""
        global _root
        if _root is None:
            self.is_root = True
            self.order.begin()
            _root = self
            try:
                return self._run(call, args, kwargs)
            finally:
                _root = None
                self.order.release_unused()
        if self is not _root:
            self.is_root = False
        return self._run(call, args, kwargs)

    def _run(self, call: Callable, args: tuple, kwargs: dict):
        if self.unit is None:
            return call(*args, **kwargs)
        order = _root.order
        position = order.enter(self)
        records = _C.is_grad_enabled() and self.unit.requires_grad
        if records and self.frees_after_forward():
            inputs = tensors_in((args, kwargs))
            result: list = []
            outputs = _Recomputed.apply(self, call, (args, kwargs), order, position, result, self.unit.anchor, *inputs)
            return with_tensors(result[0], iter(outputs))
        tensors = list(_Gathered.apply(self.unit, self.unit.anchor)) if records else self.unit.gather()
        self._prefetch_forward(order, position)
        with self.unit.installed(tensors):
            return call(*args, **kwargs)

    def _prefetch_forward(self, order: Order, position: int) -> None:
        following = order.next(position)
        if following is not None and following is not self:
            following.unit.start_gather()

    def prefetch_backward(self, order: Order, position: int) -> None:
        before = order.previous(position)
        if before is not None and before is not self and before.frees_after_forward():
            before.unit.start_gather()


class _Gathered(Function):
    """Returns a unit's gathered parameters. backward reduces their gradients."""

    @staticmethod
    def forward(ctx, unit: ShardedUnit, anchor: Tensor):
        ctx.unit = unit
        tensors = unit.gather()
        ctx.mark_non_differentiable(*(t for t, entry in zip(tensors, unit.entries) if not entry.requires_grad))
        return tuple(tensors)

    @staticmethod
    def backward(ctx, *grads):
        _reject_create_graph()
        ctx.unit.reduce([g if entry.requires_grad else None for g, entry in zip(grads, ctx.unit.entries, strict=True)])
        return None, None


def _reject_create_graph() -> None:
    if _C.is_grad_enabled():
        raise NotImplementedError("[fsdp] backward(create_graph=True) is not supported")


class _Modes:
    """The modes of forward that backward restores: autocast, the generator's state, and the module's buffers."""

    def __init__(self, module: Module):
        self._autocast = {kind: _C.autocast_dtype(kind) for kind in ("cpu", "cuda")}
        self._generator = get_rng_state()
        self._buffers = [(m, name, buffer.detach().clone()) for m in module.modules()
                         for name, buffer in m._buffers.items() if buffer is not None]  # fmt: skip

    @contextlib.contextmanager
    def restored(self):
        now = {kind: _C.autocast_dtype(kind) for kind in self._autocast}
        generator = get_rng_state()
        buffers = [(m, name, m._buffers[name]) for m, name, _ in self._buffers]
        self._set(self._autocast, self._generator, [(m, name, b.clone()) for m, name, b in self._buffers])
        try:
            yield
        finally:
            self._set(now, generator, buffers)

    @staticmethod
    def _set(autocast: dict, generator: Tensor, buffers: list) -> None:
        for kind, dtype in autocast.items():
            _C.set_autocast_dtype(kind, dtype)
        set_rng_state(generator)
        for module, name, buffer in buffers:
            module._buffers[name] = buffer


class _Recomputed(Function):
    """Runs a module without recording, and runs it again with recording in backward."""

    @staticmethod
    def forward(ctx, runner: Runner, call: Callable, arguments, order: Order, position: int, result: list, anchor: Tensor,
                *inputs: Tensor):  # fmt: skip
        ctx.runner, ctx.call, ctx.order, ctx.position = runner, call, order, position
        ctx.arguments, ctx.inputs = arguments, inputs
        ctx.modes = _Modes(runner.module)
        unit = runner.unit
        tensors = unit.gather()
        runner._prefetch_forward(order, position)
        args, kwargs = arguments
        with no_grad(), unit.installed(tensors):
            result.append(call(*args, **kwargs))
        return tuple(tensors_in(result[0]))

    @staticmethod
    def backward(ctx, *grads):
        _reject_create_graph()
        runner, unit = ctx.runner, ctx.runner.unit
        leaves = unit.gather()
        for leaf, entry in zip(leaves, unit.entries, strict=True):
            leaf.requires_grad = entry.requires_grad
        if runner.prefetches_backward == "before":
            runner.prefetch_backward(ctx.order, ctx.position)
        inputs = [t.detach().requires_grad_(t.requires_grad) for t in ctx.inputs]
        args, kwargs = with_tensors(ctx.arguments, iter(inputs))
        with enable_grad(), ctx.modes.restored(), unit.installed(leaves):
            outputs = tensors_in(ctx.call(*args, **kwargs))
        pairs = [(o, g) for o, g in zip(outputs, grads, strict=True) if o.requires_grad and g is not None]
        if pairs:
            _C.backward([o for o, _ in pairs], [g for _, g in pairs], False, False, [])
        unit.reduce([leaf.grad for leaf in leaves])
        if runner.prefetches_backward == "after":
            runner.prefetch_backward(ctx.order, ctx.position)
        return (None,) * 7 + tuple(t.grad for t in inputs)
