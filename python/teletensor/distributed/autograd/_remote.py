"""Backward passes over several workers.

A pass has a node for its roots, and one for each message whose tensors (a "send" at its sender, a "receive" at its
receiver) the pass reaches. The worker that starts it

1. finds the nodes: it asks the senders of the messages that its roots reach which messages those reach in turn, until no
   new ones are found;
2. runs its roots' node. A node's local backward pass adds gradients to the context's leaves and to the leaves of receives.
   When all nodes that reach a receive have run, its gradients go to the sender, whose node for the message then runs.

So each node runs once, with its complete gradient, and messages that do not contribute to the roots take no part.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ... import _C
from ...futures import Future, collect_all
from ..rpc import _current
from . import _context

if TYPE_CHECKING:
    from ..rpc._agent import Agent, Peer

_ROOTS = 0  # the node of the roots


class Pass:
    """One worker's part of a backward pass. Thread-safe."""

    def __init__(self, context: _context.Context, number: int, retain_graph: bool):
        self.id, self._context, self._retain_graph = number, context, retain_graph
        self._outputs: dict[int, list[_C.Tensor]] = {}  # by node that has not run
        self._reached: dict[int, list[int]] = {}  # the receives that each node reaches
        self._waiting: dict[int, set[int]] = {}  # the nodes that have not run, by receive
        self._sums: dict[int, list[_C.Tensor | None]] = {}  # gradients of the leaves, by receive
        self._lock = threading.RLock()

    def add_node(self, node: int, outputs: Sequence[_C.Tensor]) -> list[list[int]]:
        """Adds a node; returns the sender's rank and the number of each message that it reaches."""
        with self._lock, self._context.lock:
            if node in self._reached:
                return []
            leaves = {leaf._handle for leaf in _C.reached_leaves(list(outputs))}
            reached = [
                message
                for message, receive in self._context.receives.items()
                if any(leaf._handle in leaves for leaf in receive.tensors)
            ]
            self._outputs[node], self._reached[node] = list(outputs), reached
            for message in reached:
                self._waiting.setdefault(message, set()).add(node)
                self._sums.setdefault(message, [None] * len(self._context.receives[message].tensors))
            return [[self._context.receives[message].peer, message] for message in reached]

    def run(self, node: int, gradients: Sequence[_C.Tensor | None]) -> Future:
        """Runs a node; returns a future that completes when all nodes after it have run.

        Raises:
            RuntimeError: the node is unknown or has run, or a gradient does not match.
        """
        with self._lock:
            outputs = self._outputs.pop(node, None)
            if outputs is None or len(outputs) != len(gradients):
                raise RuntimeError(f"expected the gradients of a message of this backward pass, got message {node}")
            given = [
                (output, gradient)
                for output, gradient in zip(outputs, gradients)
                if gradient is not None or node == _ROOTS
            ]
            if given:
                self._accumulate(node, *zip(*given), retain_graph=self._retain_graph or bool(self._outputs))
            complete = []
            for message in self._reached[node]:
                self._waiting[message].discard(node)
                if not self._waiting[message]:
                    complete.append((message, self._sums.pop(message)))
        agent, receives = _current.agent(), self._context.receives
        return collect_all([
            agent.internal_call(receives[message].peer, "autograd.gradients", [self._context.id, self.id, message, sums], 0)
            for message, sums in complete
        ])  # fmt: skip

    def _accumulate(self, node: int, outputs: tuple, gradients: tuple, retain_graph: bool) -> None:
        leaves = _C.reached_leaves(list(outputs))
        results = _C.grad(list(outputs), list(gradients), leaves, retain_graph, False, True)
        of_receives = {
            leaf._handle: (message, i)
            for message in self._reached[node]
            for i, leaf in enumerate(self._context.receives[message].tensors)
        }
        for leaf, gradient in zip(leaves, results):
            if gradient is None:
                continue
            if leaf._handle in of_receives:
                message, i = of_receives[leaf._handle]
                known = self._sums[message][i]
                self._sums[message][i] = gradient if known is None else known + gradient
            else:
                self._context.accumulate(leaf, gradient)


def run(context: _context.Context, roots: Sequence[_C.Tensor], retain_graph: bool) -> None:
    """Runs a backward pass from this worker's roots, and waits for it."""
    number = _context.new_id()
    own = context.passes[number] = Pass(context, number, retain_graph)
    workers: set[int] = set()
    try:
        _find_nodes(context, own, roots, retain_graph, workers)
        _raise_first_error(own.run(_ROOTS, [None] * len(roots)).wait())
    finally:
        context.passes.pop(number, None)
        for rank in workers:
            _current.agent().notify(rank, "autograd.end", [context.id, number])


def backward(context_id: int, roots: Sequence, retain_graph: bool = False) -> None:
    """Runs the backward pass of a context from this worker's roots, and waits for all workers that take part.

    Each worker's gradients are added to those that the context has there.

    Raises:
        RuntimeError: there is no such context, a root requires no gradient, or a worker was lost.
    """
    roots = list(roots)
    if not roots:
        raise RuntimeError("No tensors provided for gradient computation.")
    for root in roots:
        if not root.requires_grad:
            raise RuntimeError("requires_grad not set on root")
        if root.numel() != 1:
            raise RuntimeError(f"root is not a scalar, all roots need to be scalar, got sizes {list(root.shape)}")
    run(_context.find(context_id), roots, retain_graph)


backward.__module__ = "teletensor.distributed.autograd"


def _find_nodes(context, own: Pass, roots: Sequence[_C.Tensor], retain_graph: bool, workers: set[int]) -> None:
    agent, known = _current.agent(), set()
    found = own.add_node(_ROOTS, roots)
    while found:
        messages: dict[int, list[int]] = {}
        for rank, message in found:
            if message not in known:
                known.add(message)
                messages.setdefault(rank, []).append(message)
        workers.update(messages)
        replies = [
            agent.internal_call(rank, "autograd.reach", [context.id, own.id, bool(retain_graph), of_worker])
            for rank, of_worker in messages.items()
        ]
        found = [place for reply in replies for place in reply.wait()]


def _raise_first_error(futures: Sequence[Future]) -> None:
    for future in futures:
        future.wait()


def _complete_after(result: Future, futures: Future) -> None:
    """Completes `result` after all of the collected futures, with the first one's error if there is one."""

    def on_done(collected: Future) -> None:
        result._complete(None, next((f._error for f in collected._value if f._error is not None), None))

    futures.add_done_callback(on_done)


def internal_functions(agent: Agent) -> dict[str, Callable]:
    """The functions that other workers' agents call on this worker. They do not wait."""

    def in_pool(function: Callable[[Future], None]) -> Future:
        """Runs a function that completes the future, in a thread of the pool."""
        result = Future()

        def task() -> None:
            try:
                function(result)
            except Exception as error:  # noqa: BLE001 - sent to the caller
                result.set_exception(error)

        agent.run_in_pool(task)
        return result

    def reach(_peer: Peer, context: int, number: int, retain_graph: bool, messages: list[int]) -> list:
        found = _context.find(context)
        with found.lock:
            of_pass = found.passes.setdefault(number, Pass(found, number, bool(retain_graph)))
            for message in messages:
                if message not in found.sends:
                    raise RuntimeError(f"expected a message of context {context}, got {message}")
            return [place for m in messages for place in of_pass.add_node(m, found.sends[m].tensors)]

    def gradients(peer: Peer, context: int, number: int, message: int, sums: list) -> Future:
        found = _context.find(context)
        of_pass = found.passes.get(number)
        if of_pass is None or message not in found.sends or found.sends[message].peer != peer.rank:
            raise RuntimeError(f"expected a message of a backward pass of context {context}, got {message}")
        return in_pool(lambda result: _complete_after(result, of_pass.run(message, sums)))

    def end(_peer: Peer, context: int, number: int) -> None:
        with contextlib.suppress(RuntimeError):
            _context.find(context).passes.pop(number, None)

    def backward_from(_peer: Peer, rref, context: int, retain_graph: bool) -> Future:
        def run_backward(result: Future) -> None:
            backward(context, [rref.local_value()], bool(retain_graph))
            result.set_result(None)

        return in_pool(run_backward)

    return {
        "autograd.reach": reach,
        "autograd.gradients": gradients,
        "autograd.end": end,
        "autograd.backward": backward_from,
        "autograd.release": lambda _peer, number: _context.release(number),
    }
