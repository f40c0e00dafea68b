"""Contexts of distributed autograd: the tensors that messages have carried, and the gradients of this worker's leaves."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import itertools
import threading
from collections.abc import Iterator, Mapping

from ... import _C
from ..._lazy import set_module
from ..rpc import _current

_RANK_SHIFT = 48  # ids contain the rank that chose them
_MAX_CONTEXTS = 65_536
_KEPT_RELEASED = 4096

_local = threading.local()
_lock = threading.Lock()
_contexts: dict[int, Context] = {}
_released: collections.deque[int] = collections.deque(maxlen=_KEPT_RELEASED)
_numbers = itertools.count(1)


@dataclasses.dataclass
class Transfer:
    """The tensors that one message carried: at its sender those that were sent, at its receiver the leaves in their place."""

    peer: int
    tensors: list[_C.Tensor]


class Gradients(Mapping):
    """Gradients by tensor. Two Python objects of the same tensor have one entry."""

    def __init__(self, entries: dict[int, tuple[_C.Tensor, _C.Tensor]]):
        self._entries = entries

    def __getitem__(self, tensor: _C.Tensor) -> _C.Tensor:
        return self._entries[tensor._handle][1]

    def __contains__(self, tensor: object) -> bool:
        return isinstance(tensor, _C.Tensor) and tensor._handle in self._entries

    def get(self, tensor: _C.Tensor, default=None):
        return self[tensor] if tensor in self else default

    def __iter__(self) -> Iterator[_C.Tensor]:
        return (tensor for tensor, _ in self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def items(self):
        return list(self._entries.values())

    def values(self):
        return [gradient for _, gradient in self._entries.values()]

    def __repr__(self) -> str:
        return repr(self.items())


class Context:
    """One worker's part of a context. Thread-safe."""

    def __init__(self, number: int):
        self.id = number
        self.sends: dict[int, Transfer] = {}  # by message
        self.receives: dict[int, Transfer] = {}
        self.workers: set[int] = set()  # workers with which messages were exchanged
        self.passes: dict[int, object] = {}  # backward passes in progress (_remote.py)
        self.lock = threading.RLock()
        self._gradients: dict[int, tuple[_C.Tensor, _C.Tensor]] = {}  # by handle

    def add_send(self, to: int, tensors: list[_C.Tensor]) -> list[int]:
        """Records the tensors of a message to a worker. Returns the message's header."""
        message = new_id()
        with self.lock:
            self.workers.add(to)
            if tensors:
                self.sends[message] = Transfer(to, tensors)
        return [self.id, message]

    def add_receive(self, sender: int, header: list[int], tensors: list[_C.Tensor]) -> None:
        """Records the leaves of a message with this header."""
        with self.lock:
            self.workers.add(sender)
            if tensors:
                self.receives[header[1]] = Transfer(sender, tensors)

    def accumulate(self, leaf: _C.Tensor, gradient: _C.Tensor) -> None:
        with self.lock:
            known = self._gradients.get(leaf._handle)
            self._gradients[leaf._handle] = (leaf, gradient if known is None else known[1] + gradient)

    def gradients(self) -> Gradients:
        with self.lock:
            return Gradients(dict(self._gradients))


def new_id() -> int:
    """Returns an id that no other worker chooses."""
    return (_current.agent().me.rank << _RANK_SHIFT) + next(_numbers)


def creator(number: int) -> int:
    """Returns the rank that chose an id."""
    return number >> _RANK_SHIFT


def current() -> Context | None:
    """Returns this thread's context."""
    return getattr(_local, "context", None)


@contextlib.contextmanager
def use(context: Context | None) -> Iterator[None]:
    """Makes the context the current one of this thread."""
    previous, _local.context = current(), context
    try:
        yield
    finally:
        _local.context = previous


def find(number: int) -> Context:
    """Returns a context. Raises RuntimeError if there is none."""
    with _lock:
        found = _contexts.get(number)
    if found is None:
        raise RuntimeError(f"Could not find autograd context with id: {number}")
    return found


def find_or_create(number: int) -> Context:
    """Returns a context that another worker may have created; one that was released is not kept.

    Raises:
        ValueError: there are too many.
    """
    with _lock:
        found = _contexts.get(number)
        if found is None:
            found = Context(number)
            if number not in _released:
                if len(_contexts) >= _MAX_CONTEXTS:
                    raise ValueError(f"expected at most {_MAX_CONTEXTS} autograd contexts")
                _contexts[number] = found
        return found


def of_message(header: object, sender: int) -> Context:
    """Returns the context of a message with this header. Raises ValueError if it is malformed."""
    valid = isinstance(header, list) and len(header) == 2 and all(type(part) is int and part > 0 for part in header)
    if not valid or creator(header[1]) != sender or creator(header[0]) >= len(_current.agent().peers):
        raise ValueError(f"received a malformed message: autograd header {header!r:.100}")
    return find_or_create(header[0])


def release(number: int) -> None:
    """Frees this worker's part of a context, and those of the workers that it exchanged messages with."""
    with _lock:
        found = _contexts.pop(number, None)
        if number not in _released:
            _released.append(number)
    if found is not None:
        agent = _current._agent
        for rank in found.workers:
            if agent is not None and rank != agent.me.rank:
                agent.notify(rank, "autograd.release", [number])


def drop_worker(rank: int) -> None:
    """Frees the contexts of a worker that was lost."""
    with _lock:
        dropped = [_contexts.pop(number) for number in list(_contexts) if creator(number) == rank]
    del dropped


@contextlib.contextmanager
def context() -> Iterator[int]:
    """Records the messages that this thread sends, and those of the functions they call. Yields the context's id.

    Raises:
        RuntimeError: the thread has a context already.
    """
    if current() is not None:
        raise RuntimeError(f"Already have an autograd context id for this thread: {current().id}")
    number = new_id()
    try:
        with use(find_or_create(number)):
            yield number
    finally:
        release(number)


def get_gradients(context_id: int) -> Gradients:
    """Returns this worker's gradients in a context: a mapping from leaves to gradients.

    Raises:
        RuntimeError: there is no such context.
    """
    return find(context_id).gradients()


set_module("teletensor.distributed.autograd", context)
