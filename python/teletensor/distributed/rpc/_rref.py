"""RRef: a reference to a value on one worker, its owner, which other workers can hold.

The owner counts the references of other workers ("forks", each with a unique id) and keeps the value while there are any.

- A worker that calls remote() chooses the ids of the value and of its own fork, so that it need not wait for them.
- An owner that sends an RRef adds the receiver's fork first.
- A worker that sends an RRef to a third worker keeps its own until the receiver confirms that the owner has added the
  receiver's fork.
- Messages between two workers arrive in order, so a fork is added before it is used or dropped.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from ..._lazy import set_module
from ...futures import Future
from ..autograd._remote import backward
from . import _current, _errors, _registry
from .constants import UNSET_RPC_TIMEOUT

if TYPE_CHECKING:
    from ._agent import Agent, Peer

T = TypeVar("T")
Id = tuple[int, int]  # the worker that chose it, and its number there
_CREATION_SECONDS = 5  # maximum delay of the creator's message after a third worker's message

_CALL_METHOD = "rpc:method"


class Owned:
    """A value that other workers may reference. `value` completes when the function that creates it has run."""

    def __init__(self, number: Id):
        self.id = number
        self.value = Future()
        self.forks: dict[Id, int] = {}  # the holder's rank by fork


class RRef(Generic[T]):
    """A reference to a value on a worker.

    ``RRef(value)`` references a value of this worker. Others come from remote(), and from messages. `type_hint`, which
    PyTorch uses for TorchScript, is not supported.
    """

    def __init__(self, value: T, type_hint=None):
        if type_hint is not None:
            raise NotImplementedError("[RRef] type_hint is not supported: there is no TorchScript")
        agent = _current.agent()
        self._bind(agent, agent.me.rank, agent.rrefs.own(value))

    def _bind(
        self, agent: Agent, owner: int, owned: Owned | None, number: Id = (0, 0), fork: Id | None = None, created=None
    ) -> None:
        self._agent, self._owner, self._owned = agent, owner, owned
        self._id, self._fork = owned.id if owned else number, fork
        self._created = created  # a Future that completes when the owner has confirmed the fork; None if confirmed

    @classmethod
    def _make(cls, *arguments) -> RRef:
        rref = cls.__new__(cls)
        rref._bind(*arguments)
        return rref

    def __del__(self):
        if getattr(self, "_fork", None) is not None:
            self._agent.rrefs.release(self._owner, self._id, self._fork)

    def is_owner(self) -> bool:
        """Whether this worker owns the value."""
        return self._owned is not None

    def owner(self):
        """Returns the owner's WorkerInfo."""
        return self._agent.peers[self._owner].info

    def owner_name(self) -> str:
        """Returns the owner's name."""
        return self.owner().name

    def confirmed_by_owner(self) -> bool:
        """Whether the owner has confirmed this reference."""
        return self._created is None or (self._created.done() and self._created._error is None)

    def to_here(self, timeout: float = UNSET_RPC_TIMEOUT) -> T:
        """Returns the value itself on the owner, and elsewhere a copy. Waits for it.

        Raises:
            RuntimeError: it does not arrive within the timeout in seconds, or the owner was lost.
            Other exceptions: those of the function that should have created the value.
        """
        if self._owned is not None:
            return self._owned.value.wait()
        if self._created is not None and self._created.done():
            self._created.wait()  # raises the error of the creation
        return self._agent.internal_call(self._owner, "rref.fetch", [self._id], timeout).wait()

    def local_value(self) -> T:
        """Returns the value, on the owner only. Waits until it is created."""
        if self._owned is None:
            raise RuntimeError(
                f"For {self}, can't call localValue() on user {self._agent.me.info}. Call it on owner {self.owner()}"
            )
        return self._owned.value.wait()

    def _get_future(self) -> Future:
        """Returns the future of the creation."""
        if self._created is not None:
            return self._created
        done = Future()
        done.set_result(None)
        return done

    def rpc_sync(self, timeout: float = UNSET_RPC_TIMEOUT):
        """Returns a proxy: ``rref.rpc_sync().method(...)`` calls a method of the value on the owner, and waits."""
        return _Proxy(self, "rpc_sync", timeout)

    def rpc_async(self, timeout: float = UNSET_RPC_TIMEOUT):
        """Returns a proxy whose methods return futures."""
        return _Proxy(self, "rpc_async", timeout)

    def remote(self, timeout: float = UNSET_RPC_TIMEOUT):
        """Returns a proxy whose methods return RRefs."""
        return _Proxy(self, "remote", timeout)

    def backward(self, dist_autograd_ctx_id: int = -1, retain_graph: bool = False) -> None:
        """Runs a backward pass from the value: that of a distributed autograd context, or a local pass if there is no context."""
        if dist_autograd_ctx_id == -1:
            self.local_value().backward(retain_graph=retain_graph)
        elif self.is_owner():
            backward(dist_autograd_ctx_id, [self.local_value()], retain_graph)
        else:
            self._agent.internal_call(
                self._owner, "autograd.backward", [self, dist_autograd_ctx_id, retain_graph]
            ).wait()

    def __repr__(self) -> str:
        kind = "OwnerRRef" if self.is_owner() else "UserRRef"
        return f"{kind}(id={self._id[0]}:{self._id[1]}, owner={self.owner_name()})"


def call_method(rref: RRef, name: str, *args, **kwargs):
    """Calls a method of an RRef's value, on its owner."""
    return _registry.method_of(rref.local_value(), name)(*args, **kwargs)


_registry._add(_CALL_METHOD, call_method)


calls: dict[str, Callable] = {}  # rpc_sync, rpc_async and remote, which api sets


class _Proxy:
    def __init__(self, rref: RRef, kind: str, timeout: float):
        self._rref, self._kind, self._timeout = rref, kind, timeout

    def __getattr__(self, name: str):
        call = calls[self._kind]
        rref, timeout = self._rref, self._timeout
        return lambda *args, **kwargs: call(
            rref.owner(), call_method, args=(rref, name, *args), kwargs=kwargs, timeout=timeout
        )


class RRefTable:
    """A worker's own values, and the references to values of others. Thread-safe."""

    def __init__(self, agent: Agent):
        self._agent = agent
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)  # a value was created, or a worker was lost
        self._owned: dict[Id, Owned] = {}  # those with forks
        self._unconfirmed: dict[Id, tuple[RRef, int]] = {}  # forks that were sent to third workers, and these workers

    def new_id(self) -> Id:
        return self._agent.me.rank, next(self._numbers)

    def own(self, value) -> Owned:
        owned = Owned(self.new_id())
        owned.value.set_result(value)
        return owned

    def create(self, number: Id, fork: Id, holder: int) -> Owned:
        """Adds a value that another worker creates with remote(). Raises ValueError if the ids are in use or not its own."""
        if number[0] != holder or fork[0] != holder:
            raise ValueError("the id of an RRef is not one of its creator")
        owned = Owned(number)
        owned.forks[fork] = holder
        with self._lock:
            if number in self._owned:
                raise ValueError("the id of an RRef is in use")
            self._owned[number] = owned
            self._changed.notify_all()
        return owned

    def local(self, owned: Owned) -> RRef:
        """Returns a reference to a value of this worker."""
        return RRef._make(self._agent, self._agent.me.rank, owned)

    def of_holder(self, number: Id, holder: int) -> Owned:
        """Returns the value with this id. Raises ValueError unless the worker holds a reference to it, DistError if a
        worker that sent it was lost.
        """
        with self._lock:
            self._await_creation(number)
            owned = self._owned.get(number)
            if owned is None or holder not in owned.forks.values():
                raise self._not_held(number, holder)
            return owned

    def _await_creation(self, number: Id) -> None:
        """Waits for the creator's message, which may arrive after a message from another worker to which the creator
        sent the RRef.
        """

        def is_over() -> bool:
            return number in self._owned or number[0] >= len(peers) or peers[number[0]] is me or bool(peers[number[0]].lost)

        peers, me = self._agent.peers, self._agent.me
        self._changed.wait_for(is_over, _CREATION_SECONDS)

    def _not_held(self, number: Id, holder: int) -> Exception:
        """The error for an RRef that a worker does not hold, or whose sender was lost before the owner had added its
        fork.
        """
        for rank in {number[0], holder}:
            if rank < len(self._agent.peers) and self._agent.peers[rank].lost:
                peer = self._agent.peers[rank]
                return _errors.lost(peer.info, peer.lost, f"a function with the RRef {number}")
        return ValueError(f"expected an RRef that worker {holder} holds, got the id {number}")

    def put(self, rref: RRef, to: Peer) -> list:
        """Returns an RRef as part of a message to a worker, for which a fork is added."""
        if rref._agent is not self._agent:
            raise RuntimeError("[rpc] the RRef belongs to workers that were shut down")
        if rref._owner == to.rank:
            return [rref._owner, list(rref._id), None]
        fork = self.new_id()
        with self._lock:
            if rref._owned is not None:
                self._owned[rref._id] = rref._owned
                rref._owned.forks[fork] = to.rank
            else:
                self._unconfirmed[fork] = (rref, to.rank)
        return [rref._owner, list(rref._id), list(fork)]

    def get(self, content: list, sender: Peer) -> RRef:
        """Returns the RRef that a message contains. Raises ValueError if it is malformed."""
        owner, number, fork = content
        number = checked_id(number)
        agent = self._agent
        if type(owner) is not int or not 0 <= owner < len(agent.peers):
            raise ValueError(f"expected a worker's id, got {owner!r:.100}")
        if owner == agent.me.rank:
            return self.local(self.of_holder(number, sender.rank))
        fork = checked_id(fork)
        if sender.rank == owner:
            return RRef._make(agent, owner, None, number, fork)
        added = agent.internal_call(owner, "rref.add_fork", [number, fork])
        added.add_done_callback(lambda _: agent.notify(sender.rank, "rref.confirmed", [fork]))
        return RRef._make(agent, owner, None, number, fork, added)

    def release(self, owner: int, number: Id, fork: Id) -> None:
        """Drops this worker's fork of another worker's value. Called by destructors."""
        agent = self._agent
        agent.timers.soon(lambda: agent.notify(owner, "rref.drop_fork", [number, fork]))

    def add_fork(self, sender: Peer, number: Id, fork: Id) -> None:
        """The sender has received an RRef from a third worker, which still holds its own."""
        with self._lock:
            self._await_creation(number)
            owned = self._owned.get(number)
            if owned is None or fork in owned.forks or fork[0] not in owned.forks.values():
                raise self._not_held(number, fork[0])
            owned.forks[fork] = sender.rank

    def drop_fork(self, sender: Peer, number: Id, fork: Id) -> None:
        self._drop_fork(number, fork, sender.rank)

    def _drop_fork(self, number: Id, fork: Id, holder: int) -> None:
        with self._lock:
            owned = self._owned.get(number)
            if owned is not None and owned.forks.get(fork) == holder:
                del owned.forks[fork]
                if not owned.forks:
                    del self._owned[number]
        del owned  # the value is destroyed without the lock

    def confirmed(self, sender: Peer, fork: Id) -> None:
        """The sender's fork is known to the owner."""
        with self._lock:
            if self._unconfirmed.get(fork, (None, -1))[1] == sender.rank:
                rref = self._unconfirmed.pop(fork)
            else:
                rref = None
        del rref

    def drop_worker(self, rank: int) -> None:
        """Drops all forks of a worker that was lost."""
        with self._lock:
            forks = [(o.id, f) for o in self._owned.values() for f, holder in o.forks.items() if holder == rank]
            lost = [self._unconfirmed.pop(f) for f, (_, to) in list(self._unconfirmed.items()) if to == rank]
            self._changed.notify_all()
        for number, fork in forks:
            self._drop_fork(number, fork, rank)
        del lost

    def counts(self) -> tuple[int, int]:
        """The numbers of values with forks, and of unconfirmed forks."""
        with self._lock:
            return len(self._owned), len(self._unconfirmed)


def checked_id(value: object) -> Id:
    """Returns an id that a message contains. Raises ValueError if it is malformed."""
    if isinstance(value, list | tuple) and len(value) == 2 and all(type(part) is int for part in value):
        return value[0], value[1]
    raise ValueError(f"expected the id of an RRef, got {value!r:.100}")


set_module("teletensor.distributed.rpc.api", RRef)
