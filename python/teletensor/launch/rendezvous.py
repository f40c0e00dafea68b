"""The store through which the launchers of several nodes find each other.

Launchers must agree before any engine exists, and must keep agreeing when the ranks and their engines have failed.
Their store therefore needs no engine: it is a dictionary in one launcher, served over TCP by asyncio, with the methods
of PyTorch's Store. asyncio is preferred to multiprocessing.connection because that module unpickles what it receives,
needs a thread per connection, and uses another digest in each version of Python. distributed/store is not used because
it needs gRPC, which does not survive fork(): a launcher forks the ranks of a function (start_method="fork"). A child
that opens a session then shares the epoll set of the launcher's gRPC, which loses connections or aborts in both.

Both sides prove that they have the run's token (HMAC-SHA256 of two nonces), and every message carries an HMAC of its
number and direction, so that it can be neither forged, replayed nor reordered. Messages are not encrypted; they contain
host names, ports and the last lines of a failed rank's standard error.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import secrets
import socket
import time

_MESSAGE_LIMIT = 1 << 20
_HANDSHAKE_SECONDS = 10.0
_MAX_CONNECTIONS = 4096


class StoreError(ConnectionError):
    """The store does not answer, or the peer's token differs."""


class Store:
    """The part of PyTorch's Store that launchers use. A value is bytes; a str is encoded as UTF-8."""

    def set(self, key: str, value: str | bytes) -> None:
        raise NotImplementedError

    def get(self, key: str) -> bytes:
        """Waits until the key exists."""
        raise NotImplementedError

    def add(self, key: str, amount: int) -> int:
        """Adds to a number, which is 0 if there is none, and returns the sum."""
        raise NotImplementedError

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        """Stores `desired` if the value is `expected`, or if there is none and `expected` is empty. Returns the value."""
        raise NotImplementedError

    def check(self, keys: list[str]) -> bool:
        """Whether all keys exist."""
        raise NotImplementedError

    def wait(self, keys: list[str], timeout: float | None = None) -> None:
        """Waits until all keys exist. Raises StoreError after the timeout in seconds."""
        raise NotImplementedError

    def delete_key(self, key: str) -> bool:
        """Returns whether the key existed."""
        raise NotImplementedError

    def num_keys(self) -> int:
        raise NotImplementedError


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


class _Waiting(Store):
    """get() and wait() for stores, by repeated checks."""

    def __init__(self, timeout: float):
        self._timeout = timeout

    def get(self, key: str) -> bytes:
        self.wait([key])
        return self._read(key)

    def _read(self, key: str) -> bytes:
        """Returns the value of a key that exists."""
        raise NotImplementedError

    def wait(self, keys: list[str], timeout: float | None = None) -> None:
        end = time.monotonic() + (self._timeout if timeout is None else timeout)
        while not self.check(keys):
            if time.monotonic() > end:
                raise StoreError(f"[store] expected the keys {keys} within the timeout")
            time.sleep(0.01)


class LocalStore(_Waiting):
    """A store in this process. Not thread-safe."""

    def __init__(self, timeout: float = 60.0):
        super().__init__(timeout)
        self._values: dict[str, bytes] = {}

    def _read(self, key: str) -> bytes:
        return self._values[key]

    def set(self, key: str, value: str | bytes) -> None:
        self._values[key] = _bytes(value)

    def add(self, key: str, amount: int) -> int:
        total = int(self._values.get(key, b"0")) + amount
        self._values[key] = str(total).encode()
        return total

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        current = self._values.get(key)
        if current == _bytes(expected) or (current is None and not expected):
            self._values[key] = _bytes(desired)
        return self._values.get(key, _bytes(expected))

    def check(self, keys: list[str]) -> bool:
        return all(key in self._values for key in keys)

    def delete_key(self, key: str) -> bool:
        return self._values.pop(key, None) is not None

    def num_keys(self) -> int:
        return len(self._values)


def _sign(token: str, *parts: str | bytes) -> str:
    digest = hmac.new(token.encode(), digestmod=hashlib.sha256)
    for part in parts:
        data = _bytes(part)
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


class _Channel:
    """Signs and checks the messages of one connection. `session` consists of both nonces."""

    def __init__(self, token: str, session: str, sends: str, receives: str):
        self._token, self._session, self._sends, self._receives = token, session, sends, receives
        self._sent = self._received = 0

    def seal(self, message: object) -> bytes:
        body = json.dumps(message)
        mac = _sign(self._token, self._session, self._sends, str(self._sent), body)
        self._sent += 1
        return f"{mac} {body}\n".encode()

    def open(self, line: bytes) -> object:
        mac, _, body = line.rstrip(b"\n").partition(b" ")
        expected = _sign(self._token, self._session, self._receives, str(self._received), body)
        if not hmac.compare_digest(mac, expected.encode()):
            raise StoreError("[store] a message was damaged or forged")
        self._received += 1
        return json.loads(body)


class StoreServer:
    """Serves a LocalStore over TCP, in the event loop of the caller, which uses the store directly."""

    def __init__(self, token: str):
        self.store = LocalStore()
        self._token = token
        self._server: asyncio.AbstractServer | None = None
        self._connections: set[asyncio.StreamWriter] = set()

    async def start(self, host: str, port: int) -> int:
        """Listens on all interfaces, or on the host if it is a loopback address. Returns the port. Raises OSError."""
        loopback = host == "localhost" or host.startswith("127.") or host == "::1"
        self._server = await asyncio.start_server(self._serve, host if loopback else None, port, limit=_MESSAGE_LIMIT)
        return self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in list(self._connections):
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= _MAX_CONNECTIONS:
            writer.close()
            return
        self._connections.add(writer)
        try:
            channel = await asyncio.wait_for(self._handshake(reader, writer), _HANDSHAKE_SECONDS)
            while line := await reader.readline():
                writer.write(channel.seal(self._answer(channel.open(line))))
                await writer.drain()
        except (OSError, ValueError, asyncio.TimeoutError, asyncio.CancelledError):
            pass  # the peer left, sent something invalid or has another token
        finally:
            self._connections.discard(writer)
            writer.close()

    async def _handshake(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> _Channel:
        nonce = secrets.token_hex(16)
        writer.write(f"{nonce}\n".encode())
        theirs, mac = (await reader.readline()).decode().split()
        session = nonce + theirs
        if not hmac.compare_digest(mac, _sign(self._token, session, "client")):
            writer.write(b"rejected\n")
            await writer.drain()
            raise StoreError("[store] a peer has another token")
        writer.write(f"{_sign(self._token, session, 'server')}\n".encode())
        return _Channel(self._token, session, "server", "client")

    def _answer(self, message: object) -> object:
        operation, *arguments = message
        if operation == "read":
            key = arguments[0]
            return base64.b64encode(self.store._read(key)).decode() if self.store.check([key]) else None
        if operation == "set":
            return self.store.set(arguments[0], base64.b64decode(arguments[1]))
        if operation == "add":
            return self.store.add(arguments[0], int(arguments[1]))
        if operation == "compare_set":
            value = self.store.compare_set(arguments[0], *(base64.b64decode(v) for v in arguments[1:]))
            return base64.b64encode(value).decode()
        if operation == "check":
            return self.store.check(arguments[0])
        if operation == "delete_key":
            return self.store.delete_key(arguments[0])
        if operation == "num_keys":
            return self.store.num_keys()
        raise ValueError(f"[store] unknown operation {operation!r}")


class StoreClient(_Waiting):
    """A store served by another launcher. Blocks for the duration of a call. Not thread-safe.

    Raises StoreError if the server does not answer within the timeout, or has another token.
    """

    def __init__(self, host: str, port: int, token: str, timeout: float = 60.0):
        super().__init__(timeout)
        self._address = f"{host}:{port}"
        try:
            self._socket = socket.create_connection((host, port), timeout)
        except OSError as e:
            raise StoreError(f"[store] {self._address} does not answer: {e}") from e
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile("rb")
        try:
            self._channel = self._handshake(token)
        except BaseException:
            self.close()
            raise

    @property
    def local_address(self) -> str:
        """This machine's address on the connection."""
        return self._socket.getsockname()[0]

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def _handshake(self, token: str) -> _Channel:
        nonce = secrets.token_hex(16)
        session = self._line().decode(errors="replace").strip() + nonce
        self._send(f"{nonce} {_sign(token, session, 'client')}\n".encode())
        if not hmac.compare_digest(self._line().strip(), _sign(token, session, "server").encode()):
            raise StoreError(f"[store] {self._address} uses a different TELETENSOR_GROUP_TOKEN")
        return _Channel(token, session, "client", "server")

    def _send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as e:
            raise StoreError(f"[store] {self._address} does not answer: {e}") from e

    def _line(self) -> bytes:
        try:
            line = self._file.readline(_MESSAGE_LIMIT)
        except OSError as e:
            raise StoreError(f"[store] {self._address} does not answer: {e}") from e
        if not line.endswith(b"\n"):
            raise StoreError(f"[store] {self._address} closed the connection")
        return line

    def _call(self, operation: str, *arguments: object) -> object:
        self._send(self._channel.seal([operation, *arguments]))
        return self._channel.open(self._line())

    def _read(self, key: str) -> bytes:
        value = self._call("read", key)
        if value is None:
            raise StoreError(f"[store] expected the key {key!r}")
        return base64.b64decode(value)

    def set(self, key: str, value: str | bytes) -> None:
        self._call("set", key, base64.b64encode(_bytes(value)).decode())

    def add(self, key: str, amount: int) -> int:
        return self._call("add", key, amount)

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        encoded = (base64.b64encode(_bytes(v)).decode() for v in (expected, desired))
        return base64.b64decode(self._call("compare_set", key, *encoded))

    def check(self, keys: list[str]) -> bool:
        return self._call("check", keys)

    def delete_key(self, key: str) -> bool:
        return self._call("delete_key", key)

    def num_keys(self) -> int:
        return self._call("num_keys")
