"""Agent: sends this worker's calls to other workers, and executes theirs.

A message is an envelope of plain data with the encoded arguments or result inside, so that an argument that cannot be
decoded is an error of the call, while a malformed envelope ends the connection to its sender. Each other worker's messages
are received by one thread, in order. It decodes them, and lets the pool run the functions of the user.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator

from ... import _C
from ...futures import Future
from .._object_encoding import decode, encode
from ..autograd import _context, _remote
from . import _errors, _registry
from ._channel import Incoming, LocalIncoming, LocalOutgoing, Outgoing
from ._future import RpcFuture, mark_receiving_thread
from ._mailbox import Inbox, Outbox
from ._rref import Owned, RRef, RRefTable, call_method, checked_id
from ._threads import Pool, Timers
from ._values import decode_message, encode_message
from .functions import _is_async
from .options import TensorPipeRpcBackendOptions

_log = logging.getLogger("teletensor.distributed.rpc")
# The types of an envelope's values after its kind.
_CONTENTS = {
    "call": (int, str, object, object, bytes),  # number, function, ids of the result's RRef, autograd header, arguments
    "reply": (int, bool, object, bytes),  # number, whether the call succeeded, autograd header, result or error
    "notice": (str, bytes),  # function, arguments
    "bye": (),
}


@dataclasses.dataclass(frozen=True)
class WorkerInfo:
    """A worker's number and name."""

    id: int
    name: str

    def __repr__(self) -> str:
        return f"WorkerInfo(id={self.id}, name={self.name})"


@dataclasses.dataclass
class Peer:
    """The state of another worker."""

    info: WorkerInfo
    address: str  # of its outbox
    token: str
    prefix: str
    pull_address: str
    pull_token: str
    device_maps: dict[str, dict[str, str]]
    inbox: Inbox | None = None
    lost: str = ""  # the reason why it cannot be called; empty if it can
    has_left: bool = False

    @property
    def rank(self) -> int:
        return self.info.id


@dataclasses.dataclass
class _Call:
    future: RpcFuture
    to: Peer
    name: str
    seconds: float


def _checked_future(result) -> Future:
    if isinstance(result, Future):
        return result
    raise RuntimeError(
        "Functions decorated with @rpc.functions.async_execution must return a torch.futures.Future object, got "
        f"{type(result).__name__}"
    )


class Agent:
    """Calls of this worker, and those of others that it executes. Thread-safe."""

    def __init__(self, rank: int, peers: list[Peer], outbox: Outbox, options: TensorPipeRpcBackendOptions):
        self.peers, self.me = peers, peers[rank]
        self.by_name = {peer.info.name: peer for peer in peers}
        self.timeout, self.options = options.rpc_timeout, options
        self.timers = Timers()
        self.rrefs = RRefTable(self)
        self.issued = 0  # calls, for shutdown
        self._outbox = outbox
        self._pool = Pool(options.num_worker_threads, "rpc")
        self._callbacks = Pool(options.num_worker_threads, "rpc-callbacks")
        self._erasures = Pool(1, "rpc-erasures")
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._calls: dict[int, _Call] = {}
        self._own_remote: dict[tuple[int, int], Owned] = {}  # the results of remote() at this worker, until it runs
        self._serving = 0  # calls whose reply was not sent
        self._internal: dict[str, Callable] = {
            "rref.fetch": self._fetch,
            "rref.add_fork": lambda peer, number, fork: self.rrefs.add_fork(peer, checked_id(number), checked_id(fork)),
            "rref.drop_fork": lambda peer, number, fork: self.rrefs.drop_fork(
                peer, checked_id(number), checked_id(fork)
            ),
            "rref.confirmed": lambda peer, fork: self.rrefs.confirmed(peer, checked_id(fork)),
            **_remote.internal_functions(self),
        }

    def start(self) -> None:
        """Starts to receive messages."""
        for peer in self.peers:
            if peer is not self.me:
                peer.inbox = Inbox(
                    peer.address, peer.token, peer.prefix, self.me.rank, peer.info.name, self._erasures.submit,
                    lambda data, peer=peer: self._receive(peer, data), lambda reason, peer=peer: self.on_lost(peer, reason),
                )  # fmt: skip
        for peer in self.peers:
            if peer.inbox is not None:
                peer.inbox.start()

    # ---- Calls of this worker

    def call(
        self, to: Peer, name: str, args, kwargs, seconds: float | None = None, remote: tuple | None = None
    ) -> RpcFuture:
        """Calls a function of a worker. `remote`: the ids of the RRef of the result; the future then confirms these."""
        seconds = self.timeout if seconds is None or seconds < 0 else float(seconds)
        future = RpcFuture(self._callbacks.submit)
        context = _context.current()
        channel = self._outgoing(to, context, is_reply=False)
        try:
            payload = encode_message([list(args), dict(kwargs)], channel)
            header = channel.finish()
        except BaseException:
            channel.cancel()
            raise
        number = next(self._numbers)
        with self._lock:
            if to.lost:
                raise _errors.lost(to.info, to.lost, name)
            self.issued += 1
            self._calls[number] = _Call(future, to, name, seconds)
        try:
            self._send(to, ["call", number, name, remote, header, payload], channel)
        except BaseException:
            channel.cancel()
            self._take(number)
            raise
        if seconds > 0:
            self.timers.after(seconds, lambda: self._expire(number))
        return future

    def remote(self, to: Peer, name: str, args, kwargs, seconds: float | None = None) -> RRef:
        """Calls a function of a worker, and returns a reference to its result at once."""
        number, fork = self.rrefs.new_id(), self.rrefs.new_id()
        if to is not self.me:
            created = self.call(to, name, args, kwargs, seconds, (number, fork))
            return RRef._make(self, to.rank, None, number, fork, created)
        owned = self._own_remote[number] = Owned(number)
        try:
            created = self.call(to, name, args, kwargs, seconds, (number, fork))
        except BaseException:
            self._own_remote.pop(number, None)
            raise
        return RRef._make(self, to.rank, owned, number, None, created)

    def run_in_pool(self, task: Callable[[], None]) -> None:
        """Runs a function in a thread that may wait."""
        self._pool.submit(task)

    def internal_call(self, to: int, name: str, args: list, seconds: float | None = None) -> RpcFuture:
        """Calls one of the agents' own functions; to a lost worker, returns a future with the error."""
        try:
            return self.call(self.peers[to], f".{name}", args, {}, seconds)
        except (RuntimeError, ConnectionError) as error:
            future = RpcFuture(self._callbacks.submit)
            future.settle(error=error)
            return future

    def notify(self, to: int, name: str, args: list) -> None:
        """Sends a message without an answer; none to a lost worker."""
        peer = self.peers[to]
        with contextlib.suppress(RuntimeError, ConnectionError, PermissionError):
            if not peer.lost:
                channel = self._outgoing(peer, None, is_reply=False)
                self._send(peer, ["notice", name, encode_message(args, channel)], channel)

    def _outgoing(self, to: Peer, context, is_reply: bool) -> Outgoing:
        return (LocalOutgoing if to is self.me else Outgoing)(self, to, context, is_reply)

    def _send(self, to: Peer, envelope: list, channel: Outgoing) -> None:
        data = encode(envelope)
        if to is self.me:
            self._callbacks.submit(lambda: self._receive(to, data, channel.objects))
        else:
            self._outbox.send(to.rank, data)

    def _take(self, number: int) -> _Call | None:
        with self._lock:
            call = self._calls.pop(number, None)
            self._changed.notify_all()
            return call

    def _expire(self, number: int) -> None:
        call = self._take(number)
        if call is not None:
            self._callbacks.submit(lambda: call.future.settle(error=_errors.timed_out(call.seconds)))

    def device_at(self, to: Peer, device: _C.device, is_reply: bool) -> str:
        """Returns the device of a tensor at its receiver. Raises RuntimeError if a GPU is not mapped."""
        if device.type == "cpu":
            return "cpu"
        here = f"{device.type}:{device.index or 0}"
        if is_reply:
            devices = {there: source for source, there in to.device_maps.get(self.me.info.name, {}).items()}
        else:
            devices = self.me.device_maps.get(to.info.name, {})
        if here not in devices:
            raise RuntimeError(
                "TensorPipe RPC backend only supports CPU tensors by default, please move your tensors to CPU before sending "
                f"them over RPC, or call `set_device_map` on `TensorPipeRpcBackendOptions` to explicitly configure device "
                f"mapping. Got a tensor on {here} for {to.info}, expected one of {sorted(devices)}"
            )
        return devices[here]

    # ---- Messages of others

    def _receive(self, peer: Peer, data: bytes, objects: list | None = None) -> None:
        """Handles a message. Raises ValueError if it is malformed."""
        mark_receiving_thread()
        envelope = decode(data)
        if not isinstance(envelope, list) or not envelope or envelope[0] not in list(_CONTENTS):
            raise ValueError(f"received a malformed message: {envelope!r:.100}")
        kind, *content = envelope
        types = _CONTENTS[kind]
        if len(content) != len(types) or not all(isinstance(c, t) for c, t in zip(content, types)):
            raise ValueError(f"received a malformed message: {kind} of {len(content)} values")
        incoming = Incoming(self, peer) if objects is None else LocalIncoming(self, peer, objects)
        try:
            getattr(self, f"_on_{kind}")(peer, incoming, *content)
        except (KeyError, TypeError, ValueError, AttributeError, PermissionError) as error:
            raise ValueError(f"received a malformed message: {error!r:.300}") from error

    def _on_notice(self, peer: Peer, incoming: Incoming, name: str, payload: bytes) -> None:
        self._internal[name](peer, *decode_message(payload, incoming))

    def _on_call(self, peer: Peer, incoming: Incoming, number: int, name: str, remote, header, payload: bytes) -> None:
        context = None if header is None else _context.of_message(header, peer.rank)
        with self._lock:
            self._serving += 1
        owned = None
        try:
            if remote is not None:
                owned = self._created(peer, *map(checked_id, remote))
            args, kwargs = decode_message(payload, incoming)
            if context is not None:
                context.add_receive(peer.rank, header, incoming.recorded)
            is_internal = name.startswith(".")
            function = self._internal[name[1:]] if is_internal else _registry.function_of(name)
        except Exception as error:  # noqa: BLE001 - sent to the caller
            if owned is not None:
                owned.value.set_exception(error)
            return self._reply(peer, number, None, error)
        if owned is not None:
            self._reply(peer, number, context, None, is_last=False)
        if is_internal:
            return self._execute(peer, number, lambda: function(peer, *args), context, owned, may_wait=True)
        return self._pool.submit(lambda: self._run(peer, number, function, args, kwargs, context, owned))

    def _created(self, peer: Peer, number: tuple[int, int], fork: tuple[int, int]) -> Owned:
        if peer is not self.me:
            return self.rrefs.create(number, fork, peer.rank)
        with self._lock:
            return self._own_remote.pop(number)

    def _run(self, peer: Peer, number: int, function: Callable, args, kwargs, context, owned: Owned | None) -> None:
        try:
            if function is call_method:
                rref, method, *args = args
                function = _registry.method_of(rref.local_value(), method)
        except Exception as error:  # noqa: BLE001 - sent to the caller
            return self._finish(peer, number, context, owned, None, error)
        run = lambda: function(*args, **kwargs)  # noqa: E731
        if _is_async(function):
            run = lambda: _checked_future(function(*args, **kwargs))  # noqa: E731
        return self._execute(peer, number, run, context, owned, _is_async(function))

    def _execute(self, peer: Peer, number: int, run: Callable, context, owned: Owned | None, may_wait: bool) -> None:
        """Runs a function, and sends its result. `may_wait`: the result may be a Future, whose value is sent."""
        try:
            with _context.use(context):
                result = run()
        except Exception as error:  # noqa: BLE001 - sent to the caller
            return self._finish(peer, number, context, owned, None, error)
        if may_wait and isinstance(result, Future):
            return result.add_done_callback(
                lambda done: self._finish(peer, number, context, owned, done._value, done._error)
            )
        return self._finish(peer, number, context, owned, result, None)

    def _finish(self, peer: Peer, number: int, context, owned: Owned | None, result, error) -> None:
        if owned is None:
            return self._reply(peer, number, context, error, result)
        owned.value._complete(result, error)
        return self._served()

    def _served(self) -> None:
        with self._lock:
            self._serving -= 1
            self._changed.notify_all()

    def _reply(self, peer: Peer, number: int, context, error, result=None, is_last: bool = True) -> None:
        """Sends the answer to a call. `is_last`: its function has run."""
        try:
            self._send_reply(peer, number, context, result, error)
        except (ConnectionError, PermissionError) as failure:
            _log.debug("no reply to %s: %s", peer.info, failure)
        except Exception as failure:  # noqa: BLE001 - the result cannot be sent
            with contextlib.suppress(RuntimeError, ConnectionError, PermissionError):
                self._send_reply(peer, number, None, None, failure)
        finally:
            if is_last:
                self._served()

    def _send_reply(self, peer: Peer, number: int, context, result, error) -> None:
        channel = self._outgoing(peer, context, is_reply=True)
        try:
            payload = encode_message([result if error is None else _errors.describe(error)], channel)
            self._send(peer, ["reply", number, error is None, channel.finish(), payload], channel)
        except BaseException:
            channel.cancel()
            raise

    def _on_reply(self, peer: Peer, incoming: Incoming, number: int, ok: bool, header, payload: bytes) -> None:
        with self._lock:
            call = self._calls.get(number)
            if call is None or call.to is not peer:
                return  # it has timed out
        value, error = None, None
        try:
            (value,) = decode_message(payload, incoming)
            if header is not None:
                _context.of_message(header, peer.rank).add_receive(peer.rank, header, incoming.recorded)
            if not ok:
                value, error = None, _errors.rebuild(value, peer.info)
        except Exception as failure:  # noqa: BLE001 - raised by the future
            error = failure
        call.future.settle(value, error)
        self._take(number)

    def _fetch(self, peer: Peer, number):
        return self.rrefs.of_holder(checked_id(number), peer.rank).value

    # ---- Ends of workers

    def _on_bye(self, peer: Peer, _incoming: Incoming) -> None:
        peer.has_left = True
        self.on_lost(peer, "it has shut down")
        peer.inbox.stop()

    def on_lost(self, peer: Peer, reason: str) -> None:
        """Fails the calls to a worker that was lost, and drops its references."""
        with self._lock:
            peer.lost = peer.lost or reason
            failed = {number: call for number, call in self._calls.items() if call.to is peer}
            for number in failed:
                del self._calls[number]
            self._changed.notify_all()
        if not peer.has_left:
            _log.warning("%s was lost: %s", peer.info, reason)
        for call in failed.values():
            self._callbacks.submit(
                lambda call=call: call.future.settle(error=_errors.lost(peer.info, reason, call.name))
            )
        self.rrefs.drop_worker(peer.rank)
        _context.drop_worker(peer.rank)

    def living(self) -> Iterator[Peer]:
        """The other workers that were not lost."""
        return (peer for peer in self.peers if peer is not self.me and not peer.lost)

    def wait_until_idle(self, timeout: float | None) -> bool:
        """Waits until all calls that this worker has made or executes are complete. Returns false after the timeout."""
        self.timers.wait()
        with self._lock:
            return self._changed.wait_for(lambda: not self._calls and not self._serving, timeout)

    def stop(self, timeout: float | None) -> None:
        """Notifies the others that this worker leaves, and ends the threads; waits until the others have left, at most
        `timeout`.
        """
        for peer in self.peers:
            if peer is not self.me and (peer.has_left or not peer.lost):
                with contextlib.suppress(RuntimeError, ConnectionError, PermissionError):
                    self._outbox.send(peer.rank, encode(["bye"]))
        deadline = None if timeout is None else time.monotonic() + timeout
        for peer in self.peers:
            if peer.inbox is not None:
                peer.inbox.thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
                peer.inbox.close()
        for peer in list(self.living()):
            peer.has_left = True
            self.on_lost(peer, "this worker has shut down")
        self.timers.stop()
        self._pool.stop()
        self._callbacks.stop()
        self._erasures.stop()
