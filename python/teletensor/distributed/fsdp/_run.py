"""Forward and backward of a sharded unit.

A unit's parameters are gathered for its forward. A unit either keeps them until backward, or frees them after forward. The
tape saves views of gathered parameters that it needs in backward; the engine's operators ``saved_bytes_*`` free the bytes of
these views, and restore them from parameters that are gathered again when the first gradient of the unit's results arrives.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable

from ... import _C
from ..._C import Tensor
from ..._grad_mode import enable_grad, no_grad
from ...autograd import Function
from ...autograd._passes import at_end_of_outermost_pass, current_pass
from ...nn.modules.module import Module
from ._nested import map_tensors, results_in, tensors_in
from ._unit import ShardedUnit, end_backward


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
        for runner in {*self._before, *self._now}:
            runner.unit.release()

    def previous(self, position: int) -> Runner | None:
        """The unit that ran before in this pass."""
        return self._now[position - 1] if 0 < position < len(self._now) else None


_root: Runner | None = None  # the unit whose forward pass is the outermost one in progress
_numbers = itertools.count(1)  # of saved bytes; see saved_bytes_watch
_dropped: collections.deque[int] = collections.deque()  # numbers of saved bytes that no graph needs


class Runner:
    """Runs a module whose parameters are those of a unit.

    Args:
        module: the module.
        unit: its parameters, or None if it has none of its own.
        frees: whether the gathered parameters are freed after forward. None: true unless this is the root.
    """

    def __init__(self, module: Module, unit: ShardedUnit | None, frees: bool | None):
        self.module, self.unit = module, unit
        self.frees = frees
        self.order = Order()
        self.prefetches_backward: str | None = "before"  # "before" or "after" this unit's gradients, or None
        self.forward_prefetch: list[Runner] | None = None  # units to gather in advance; None: the next one
        self.backward_prefetch: list[Runner] | None = None
        self.gathers_in_backward = True
        self.is_root: bool | None = None
        self.waiting = 0  # forward passes without their backward pass
        self._in_backward: list[_Pass] = []  # whose parameters are installed
        self._is_unsharded = False  # by unshard()
        if unit is not None:
            unit.reset = self._reset

    def frees_after_forward(self) -> bool:
        if self.unit is None or self.unit.ranks == 1:
            return False
        return not self.is_root if self.frees is None else self.frees

    def __call__(self, call: Callable, args: tuple, kwargs: dict):
        """Returns ``call(*args, **kwargs)``, which runs the module with the gathered parameters."""
        global _root
        if self._in_backward:
            if current_pass() is not None:
                return call(*args, **kwargs)  # activation checkpoints run it again, with the parameters of backward
            end_backward()  # a backward pass was interrupted by an error
        if _root is None:
            if current_pass() is None:
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
        while _dropped:
            _C.ops.saved_bytes_drop(_dropped.popleft())
        self.reshard()
        order, unit = _root.order, self.unit
        position = order.enter(self)
        if not _C.is_grad_enabled():
            tensors = unit.views(unit.gather())
            self._prefetch_forward(order, position)
            with unit.installed(unit.presented(tensors)):
                return call(*args, **kwargs)
        this = _Pass(self, order, position)
        this.base = unit.gather()
        if self.frees_after_forward():
            this.watch()
        if unit.requires_grad:
            tensors = list(_Gathered.apply(unit, this, unit.anchor))
        else:
            tensors = unit.views(this.base)
            args, kwargs = _entered(this, args, kwargs)
        self._prefetch_forward(order, position)
        with unit.installed(unit.presented(tensors)):
            result = call(*args, **kwargs)
        del tensors
        this.leave_forward([t for t in results_in(result) if t.requires_grad])
        return result

    def _prefetch_forward(self, order: Order, position: int) -> None:
        following = order.next(position)
        for runner in [following] if self.forward_prefetch is None else self.forward_prefetch:
            if runner is not None and runner is not self and runner.unit is not None:
                runner.unit.start_gather()

    def prefetch_backward(self, order: Order, position: int) -> None:
        """Gathers the units whose backward pass is expected next, if their parameters are freed."""
        before = order.previous(position)
        for runner in [before] if self.backward_prefetch is None else self.backward_prefetch:
            if runner is not None and runner is not self and runner.waiting and not runner._in_backward:
                runner.unit.start_gather()

    def unshard(self) -> None:
        """Gives the module the gathered parameters until its next forward or reshard()."""
        if self._is_unsharded or self._in_backward or self.unit is None:
            return
        unit = self.unit
        this = _Pass(self, self.order, 0)
        this.base = unit.gather()
        records = _C.is_grad_enabled() and unit.requires_grad
        tensors = list(_Gathered.apply(unit, None, unit.anchor, this.base)) if records else unit.views(this.base)
        unit.install(unit.presented(tensors))
        self._is_unsharded = True

    def reshard(self) -> None:
        """Ends unshard()."""
        if self._is_unsharded:
            self._is_unsharded = False
            self.unit.uninstall()

    def _reset(self) -> None:
        for this in list(self._in_backward):
            this.leave_backward(prefetches=False)


class _Pass:
    """One forward pass of a unit and its backward pass."""

    def __init__(self, runner: Runner, order: Order, position: int):
        self.runner, self.order, self.position = runner, order, position
        self.base: Tensor | None = None  # the gathered parameters; None while they are freed
        self._number = 0  # of the saved bytes; 0 if the parameters are kept
        self._version = 0  # of the unit in forward
        self._is_waiting = self._in_backward = False

    def __del__(self):
        if self._number:
            _dropped.append(self._number)  # a finalizer issues nothing: the session may be in use
        self._stop_waiting()

    def _stop_waiting(self) -> None:
        self.runner.waiting -= self._is_waiting
        self._is_waiting = False

    def watch(self) -> None:
        """Makes the bytes of the parameters that the tape saves from now on releasable."""
        self._number = next(_numbers)
        self._version = self.runner.unit.version()
        _C.ops.saved_bytes_watch(self._number, self.base)

    def leave_forward(self, outputs: list[Tensor]) -> None:
        """Frees the parameters, unless no gradient of an output could announce the backward pass."""
        for output in outputs:
            output.register_hook(self._enter_backward)
        if self._number and outputs:
            _C.ops.saved_bytes_release(self._number)
            self.base = None
            self._is_waiting = True
            self.runner.waiting += 1

    def _enter_backward(self, grad: Tensor) -> None:
        """The hook of the outputs: gathers the parameters, and gives them to the tape and to the module."""
        if self._in_backward or (self.base is None and not self.runner.gathers_in_backward):
            return
        unit = self.runner.unit
        self._in_backward = True
        self._stop_waiting()
        at_end_of_outermost_pass(end_backward)
        with no_grad():
            if self.base is None:
                if unit.version() != self._version:
                    raise RuntimeError(
                        "one of the variables needed for gradient computation has been modified by an inplace operation: sharded "
                        f"parameters of {type(self.runner.module).__name__} were changed between forward and backward"
                    )
                self.base = unit.gather()
                _C.ops.saved_bytes_restore(self._number, self.base)
        if self.runner.prefetches_backward == "before":
            self.runner.prefetch_backward(self.order, self.position)
        with enable_grad():
            records = unit.requires_grad
            tensors = list(_Gathered.apply(unit, None, unit.anchor, self.base)) if records else unit.views(self.base)
        unit.install(unit.presented(tensors))
        self.runner._in_backward.append(self)

    def leave_backward(self, prefetches: bool = True) -> None:
        """Frees the parameters again. A graph that is kept gathers them again in its next pass."""
        if not self._in_backward:
            return
        self._in_backward = False
        self.runner._in_backward.remove(self)
        self.runner.unit.uninstall()
        if self._number:
            _C.ops.saved_bytes_release(self._number)
            self.base = None
        if prefetches and self.runner.prefetches_backward == "after":
            self.runner.prefetch_backward(self.order, self.position)


class _Gathered(Function):
    """Returns a unit's gathered parameters. backward reduces their gradients, and ends the unit's backward pass.

    The node precedes all others of the unit's forward pass, so that it runs after all of them.
    """

    @staticmethod
    def forward(ctx, unit: ShardedUnit, this: _Pass | None, anchor: Tensor, base: Tensor | None = None):
        ctx.unit, ctx.this = unit, this
        ctx.set_materialize_grads(False)
        tensors = unit.views(this.base if base is None else base)
        ctx.mark_non_differentiable(*(t for t, entry in zip(tensors, unit.entries) if not entry.requires_grad))
        return tuple(tensors)

    @staticmethod
    def backward(ctx, *grads):
        _reject_create_graph()
        at_end_of_outermost_pass(end_backward)
        ctx.unit.reduce([g if entry.requires_grad else None for g, entry in zip(grads, ctx.unit.entries, strict=True)])
        if ctx.this is not None:
            ctx.this.leave_backward()
        return None, None, None, None


class _Entered(Function):
    """Returns the inputs of a unit without trainable parameters. backward ends the unit's backward pass."""

    @staticmethod
    def forward(ctx, this: _Pass, *inputs: Tensor):
        ctx.this = this
        return tuple(t.view_as(t) for t in inputs)

    @staticmethod
    def backward(ctx, *grads):
        ctx.this.leave_backward()
        return None, *grads


def _entered(this: _Pass, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """The arguments, with a node before the unit's others."""
    inputs = [t for t in tensors_in((args, kwargs)) if t.requires_grad]
    if not inputs:
        return args, kwargs
    outputs = {id(t): new for t, new in zip(inputs, _Entered.apply(this, *inputs), strict=True)}
    return map_tensors(lambda t: outputs.get(id(t), t), (args, kwargs))


def _reject_create_graph() -> None:
    if _C.is_grad_enabled():
        raise NotImplementedError("[fsdp] backward(create_graph=True) is not supported")
