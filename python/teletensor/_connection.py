"""The process's connection to an engine.

Unless connect() is called first, creating the first tensor connects to ``TELETENSOR_ADDRESS`` or, if that is not set,
starts a private engine.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence

from . import _C, _engine_package, _html, _threads
from ._version import __version__

_current: _C.Connection | None = None
_all: Engines | None = None  # of connect_all()
environment: dict[str, str] = {}  # variables by which another process connects to the same engine
_settings: dict[str, tuple] = {}  # arguments by operator name; issued again in every new session
_opening = threading.RLock()  # held by connection() while it opens a session
_has_ended = False  # whether the program is ending
_traceparent = ""  # trace context of calls, in all sessions
_refusal: BaseException | type[BaseException] | None = None  # raised by connect()
at_disconnection: list[Callable[[], None]] = []  # functions that forget what belongs to the sessions, when they are closed
_has_connected = False  # whether this process, or the one that it was forked from, has had a session


def connect(
    address: str = "",
    *,
    token: str = "",
    memory_limit: int = 0,
    compression: str | None = "auto",
    content_addressed: bool = False,
    fingerprint: str = "",
    ca: str = "",
    certificate: str = "",
    key: str = "",
) -> _C.Connection:
    """Opens a session with an engine and makes it this process's session. Closes the previous one.

    Args:
        address: ``"host:port"``, ``"teletensors://host:port"`` (with TLS) or ``"unix:PATH"``. If empty,
            ``TELETENSOR_ADDRESS`` is used. If that variable is not set either, a private engine is started, which ends with
            this process.
        token: the engine's token. If empty, it is read from ``TELETENSOR_TOKEN`` or else from the token file.
        memory_limit: the memory limit to request for this session, in bytes; 0 requests the engine's default.
        compression: of tensors' bytes on the connection. ``"auto"`` compresses them if that shortens their transfer over
            the link, as measured; ``"zstd"`` always; ``None`` never. ``TELETENSOR_COMPRESSION`` (``auto``, ``zstd`` or
            ``none``) replaces ``"auto"``. Bytes in shared memory are not compressed.
        content_addressed: do not send uploads of more than 1 MiB whose bytes a tensor of a session with the same token
            has: the engine copies them. Each such upload waits for a round trip, in the background.
            ``TELETENSOR_CONTENT_ADDRESSED=1`` requests it too.
        fingerprint: with TLS, the SHA-256 fingerprint of the engine's certificate, as teletensord prints it at its start
            (``TELETENSOR_TLS_FINGERPRINT``). It is remembered for the address after the first connection. Without one, an
            authority must have signed the certificate for the host's name.
        ca: file of authorities in PEM format, instead of the system's (``TELETENSOR_TLS_CA``).
        certificate, key: PEM files by which this client identifies itself, if the engine requires it
            (``TELETENSOR_TLS_CERTIFICATE``, ``TELETENSOR_TLS_KEY``).

    Raises:
        ValueError: `compression` or its variable has another value; options for TLS are malformed, or given for an
            address without TLS.
        ConnectionError: the engine does not answer, its certificate is not the expected one, the token is wrong, or no
            engine can be started, for example because none is installed (``pip install teletensor[engine]``).
    """
    global _current, environment
    disconnect()
    trust = {"fingerprint": fingerprint, "ca": ca, "certificate": certificate, "key": key}
    _current = _open(address, token, memory_limit, compression, content_addressed, trust)
    given = {"TELETENSOR_ADDRESS": address, "TELETENSOR_TOKEN": token}
    given.update({f"TELETENSOR_TLS_{name.upper()}": value for name, value in trust.items()})
    environment = {name: value for name, value in given.items() if value}
    return _current


def _open(
    address: str, token: str, memory_limit: int, compression: str | None, content_addressed: bool, trust: dict[str, str]
) -> _C.Connection:
    """Opens a session, which becomes the one that calls without a tensor argument use."""
    global _has_connected
    if _refusal is not None:
        raise _refusal
    _has_connected = True
    connection = _C.connect(
        address=address,
        token=token,
        client_name=f"python {sys.version.split()[0]} teletensor {__version__}",
        memory_limit=memory_limit,
        compression=compression or "none",
        content_addressed=content_addressed,
        traceparent=_traceparent,
        engine_binary="" if address else _engine_package.binary(),
        **trust,
    )
    if _traceparent:
        connection.set_trace_context(_traceparent)
    _C.set_session(connection)
    for operator, arguments in _settings.items():
        getattr(_C.ops, operator)(*arguments)
    return connection


class Engines(Sequence):
    """The sessions that connect_all() opened, in order. A tensor belongs to one of them; DTensors span several."""

    def __init__(self, connections: Sequence[_C.Connection], addresses: Sequence[str]):
        self._connections, self.addresses = list(connections), list(addresses)

    def __getitem__(self, index):
        return self._connections[index]

    def __len__(self) -> int:
        return len(self._connections)

    @contextlib.contextmanager
    def use(self, index: int) -> Iterator[_C.Connection]:
        """Within the context, calls without a tensor argument, such as ``torch.zeros``, use this engine."""
        global _current
        previous, _current = _current, self._connections[index]
        _C.set_session(_current)
        try:
            yield _current
        finally:
            _current = previous
            _C.set_session(previous)

    def synchronize(self) -> None:
        """Waits until all engines have executed everything issued so far; raises as :func:`synchronize`."""
        for connection in self._connections:
            connection.synchronize()

    def __repr__(self) -> str:
        return f"Engines({', '.join(address or 'private' for address in self.addresses)})"

    def _repr_html_(self) -> str:
        """A table of the engines, for notebooks. Does not wait."""
        rows = []
        for i, session in enumerate(self._connections):
            engine = session.engine()
            rows.append((i, session.address, engine["version"], engine["session"], ", ".join(d["device"] for d in engine["devices"])))
        return _html.table("<b>Engines</b>", rows, head=("", "address", "version", "session", "devices"))


def connect_all(
    addresses: Sequence[str] | int,
    *,
    token: str = "",
    memory_limit: int = 0,
    compression: str | None = "auto",
    content_addressed: bool = False,
    ca: str = "",
    certificate: str = "",
    key: str = "",
) -> Engines:
    """Opens a session with each of several engines, which this process controls. Closes the previous sessions.

    ``init_device_mesh`` then returns a mesh of these engines, over which ``distribute_tensor`` and ``distribute_module``
    distribute tensors. Other tensors belong to the first engine, or to the one selected by ``Engines.use``.

    Args:
        addresses: the engines' addresses, as for ``connect()``, or a number of private engines to start. The engines must
            reach each other: the first one serves the store at which they meet, at the host of its address.
        token, memory_limit, compression, content_addressed, ca, certificate, key: of each session, as for ``connect()``.
            A fingerprint belongs to one engine; those that connect() has remembered are used.

    Raises:
        ValueError: there is no address, or one is given twice.
        ConnectionError: an engine does not answer or cannot be started; no session is open then.
    """
    global _current, _all
    names = [""] * addresses if isinstance(addresses, int) else list(addresses)
    given = [name for name in names if name]
    if not names or len(set(given)) != len(given) or (given and len(given) != len(names)):
        raise ValueError(f"[connect_all] expected distinct addresses of at least one engine, got {addresses!r}")
    disconnect()
    trust = {"fingerprint": "", "ca": ca, "certificate": certificate, "key": key}
    opened: list[_C.Connection] = []
    try:
        for name in names:
            opened.append(_open(name, token, memory_limit, compression, content_addressed, trust))
    except BaseException:
        _C.set_session(None)
        for session in opened:
            session.close()
        raise
    _all, _current = Engines(opened, names), opened[0]
    _C.set_session(_current)
    return _all


def engines() -> Engines | None:
    """Returns what connect_all() returned last, if those sessions are open."""
    return _all


def configure_sessions(operator: str, *arguments) -> None:
    """Issues an operator that configures a session, in the open session and in every later session."""
    _settings[operator] = arguments
    if _current is not None:
        issue_in_sessions(operator, *arguments)


def issue_in_sessions(operator: str, *arguments) -> None:
    """Issues an operator without tensors in all open sessions; opens a session if there is none."""
    if _all is None:
        getattr(_C.ops, operator)(*arguments)
        return
    for i in range(len(_all)):
        with _all.use(i):
            getattr(_C.ops, operator)(*arguments)


def _sessions() -> list[_C.Connection]:
    return list(_all) if _all is not None else [_current] if _current is not None else []


def traceparent() -> str:
    """Returns the trace context of calls; "" if there is none."""
    return _traceparent


def set_traceparent(text: str) -> None:
    """Sets the trace context of calls (see set_trace_context), in the open sessions and in every later session."""
    global _traceparent
    _C.check_traceparent(text)
    _traceparent = text
    for session in _sessions():
        with contextlib.suppress(ConnectionError):  # the session has ended; its next call raises the error
            session.set_trace_context(text)


def connection() -> _C.Connection:
    """Returns the open session; opens one if there is none. Threads that call it at once get the same one."""
    if _current is not None:
        return _current
    if _has_ended and threading.current_thread() is not threading.main_thread():
        raise ConnectionError("[connection] the program is ending")
    with _opening:
        return _current or connect()


def has_connected() -> bool:
    """Whether this process, or the one that it was forked from, has had a session. A session that is opened after a fork
    of such a process does not work: gRPC's threads and locks are those of the parent.
    """
    return _has_connected


def refuse_sessions(error: BaseException | type[BaseException]) -> None:
    """Drops the session of the process that this one was forked from; creating a tensor raises `error`."""
    global _refusal, _current, _all
    _current, _all = None, None
    _C.set_session(None)
    _refusal = error


def set_for_later_sessions(operator: str, *arguments) -> None:
    """Issues an operator that configures a session in every later session."""
    _settings[operator] = arguments


def disconnect() -> None:
    """Ends the session, or all sessions of connect_all(). Its tensors are freed in the engine and become unusable."""
    global _current, _all
    sessions = _sessions()
    _current, _all = None, None
    if sessions:
        _C.set_session(None)
    for session in sessions:
        session.close()
    if sessions and not _has_ended:
        for forget in at_disconnection:
            forget()


def synchronize() -> None:
    """Waits until everything issued so far has been executed.

    Raises the error of an update in place that was not executed, once (docs/errors.md).
    """
    connection().synchronize()


def _transfers(link: dict, direction: str) -> str:
    sent, rate = link[f"{direction}_compressed_bytes"], link[f"{direction}_rate"]
    measured = f"{rate / 1e6:.1f} MB/s" if rate > 0 else "not measured"
    return f"{direction}s: {link[f'{direction}_bytes'] / 1e6:.1f} MB in {sent / 1e6:.1f} MB of chunks; rate of the link: {measured}"


def sync_report(limit: int = 20) -> str:
    """Returns a table of the source lines that waited for the engine, with counts and seconds, and the state of the link.

    A line waits for a value (read), until the engine has received its bytes (upload), or until the engine has executed
    enough of the queued calls (window; the engine is then busy, so this costs no time). The costliest lines are first;
    `limit` is the maximum number of lines.
    """
    rows, link = connection().wait_report(), connection().counters()
    waits = [row for row in rows if row[1] != "window"]
    if waits:
        total, seconds = sum(r[2] for r in waits), sum(r[3] for r in waits)
        lines = [f"waited for {total} round trips, {seconds:.3f} s in total"]
    else:
        lines = ["no round trips"]
    lines += [f"{count:8d} x  {spent:9.3f} s  {kind:6s}  {where or '(unknown)'}" for where, kind, count, spent in rows[:limit]]
    lines.append(
        f"link: round trip {link['round_trip'] * 1e3:.2f} ms; {link['bytes_sent'] / 1e6:.1f} MB in {link['frames']} frames sent; "
        f"{link['frames_in_flight']} of at most {link['max_frames_in_flight']} frames and "
        f"{link['upload_bytes_in_flight'] / 1e6:.1f} MB of uploads in flight"
    )
    lines += [_transfers(link, direction) for direction in ("upload", "download") if link[f"{direction}_bytes"] > 0]
    return "\n".join(lines)


class no_sync(contextlib.ContextDecorator):  # noqa: N801 - named as no_grad
    """Raises RuntimeError at calls of this thread that would wait for a value, a size that depends on data, or an upload.

    A context manager and a decorator. Values that have arrived can be read. ``synchronize()`` and a wait until the engine
    has executed enough of the queued calls are not concerned.

    Args:
        enabled: False: allows waits again, inside of an outer no_sync().
    """

    def __init__(self, enabled: bool = True):
        self._policy, self._before = 2 if enabled else 0, []

    def __enter__(self) -> no_sync:
        self._before.append(_C.set_thread_wait_policy(self._policy))
        return self

    def __exit__(self, *exception) -> None:
        _C.set_thread_wait_policy(self._before.pop())


class immediate_errors(contextlib.ContextDecorator):  # noqa: N801 - named as no_grad
    """Makes every call of this thread wait until it is known whether it has failed, and raise its error.

    A context manager and a decorator, for the search for an error. Each call takes a round trip. The environment variable
    TELETENSOR_LAUNCH_BLOCKING=1, or CUDA_LAUNCH_BLOCKING=1, does this for all threads of a program.
    """

    def __enter__(self) -> immediate_errors:
        _C.add_thread_error_waits(1)
        return self

    def __exit__(self, *exception) -> None:
        _C.add_thread_error_waits(-1)


if any(os.environ.get(name, "0") not in ("", "0") for name in ("TELETENSOR_LAUNCH_BLOCKING", "CUDA_LAUNCH_BLOCKING")):
    _C.add_error_waits(1)


def _end() -> None:
    """Ends the sessions when the program ends: at once if threads may wait for them, whose end it waits for, or else after
    the finalizers (``__del__``) of the program's objects. Later threads open none.
    """
    global _has_ended
    _has_ended = True
    if threading.active_count() > 1:
        disconnect()
        _threads.join_all()
    for session in _sessions():
        _C.close_with_interpreter(session)


atexit.register(_end)
