"""DistributedOptimizer: optimizes parameters on several workers of torch.distributed.rpc."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Sequence

from ..._lazy import set_module
from ..autograd import _context
from ..rpc import _registry, api
from ..rpc._agent import WorkerInfo
from ..rpc._rref import RRef


class _LocalOptimizer:
    """The optimizer of one worker's parameters. Steps run one after another, in all contexts."""

    _lock = threading.Lock()

    def __init__(self, optimizer_class: type, parameters: Sequence[RRef], args: tuple, kwargs: dict):
        self._parameters = [rref.local_value() for rref in parameters]
        self._optimizer = optimizer_class(self._parameters, *args, **kwargs)

    def step(self, context_id: int) -> None:
        gradients = _context.find(context_id).gradients()
        with self._lock:
            kept = [parameter.grad for parameter in self._parameters]
            try:
                for parameter in self._parameters:
                    parameter.grad = gradients.get(parameter)
                self._optimizer.step()
            finally:
                for parameter, grad in zip(self._parameters, kept):
                    parameter.grad = grad


def _create(optimizer_class: type, parameters: Sequence[RRef], args: tuple, kwargs: dict) -> _LocalOptimizer:
    from ...optim import Optimizer

    if not (inspect.isclass(optimizer_class) and issubclass(optimizer_class, Optimizer)):
        raise TypeError(f"expected an optimizer's class, got {optimizer_class!r:.100}")
    return _LocalOptimizer(optimizer_class, parameters, args, kwargs)


def _step(optimizer: RRef, context_id: int) -> None:
    local = optimizer.local_value()
    if not isinstance(local, _LocalOptimizer):
        raise TypeError(f"expected an optimizer of this worker, got {type(local).__name__}")
    local.step(context_id)


_registry._add("optim:create", _create)
_registry._add("optim:step", _step)


class DistributedOptimizer:
    """An optimizer of parameters on several workers, with one optimizer per worker.

    Args:
        optimizer_class: a class of ``torch.optim``, or one that the parameters' owners have registered.
        params_rref: RRefs of the parameters.
        args, kwargs: of the class, after the parameters.

    Raises:
        The exceptions of the class on any worker.
    """

    def __init__(self, optimizer_class: type, params_rref: Sequence[RRef], *args, **kwargs):
        of_owner: dict[WorkerInfo, list[RRef]] = {}
        for rref in params_rref:
            of_owner.setdefault(rref.owner(), []).append(rref)
        agent = api._get_current_rpc_agent()
        created = [
            agent.remote(agent.peers[owner.id], "optim:create", (optimizer_class, parameters, args, kwargs), {})
            for owner, parameters in of_owner.items()
        ]
        for rref in created:
            agent.call(agent.peers[rref.owner().id], "optim:exists", (rref,), {}).wait()
        self.remote_optimizers = created

    def step(self, context_id: int) -> None:
        """Steps all workers' optimizers with the gradients of a context, and waits for them.

        Raises:
            RuntimeError: there is no such context, or a worker was lost.
        """
        agent = api._get_current_rpc_agent()
        steps = [
            agent.call(agent.peers[rref.owner().id], "optim:step", (rref, context_id), {})
            for rref in self.remote_optimizers
        ]
        for step in steps:
            step.wait()


def _exists(optimizer: RRef) -> None:
    """Raises the exception raised when the optimizer was created."""
    optimizer.local_value()


_registry._add("optim:exists", _exists)

set_module("teletensor.distributed.optim.optimizer", DistributedOptimizer)
