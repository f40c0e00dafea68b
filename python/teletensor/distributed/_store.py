"""Stores: keys and values that the ranks of a run share, with PyTorch's interface.

``TCPStore`` is served by an engine, ``FileStore`` by a file, ``HashStore`` by this process; ``PrefixStore`` adds a prefix
to another store's keys.
"""

from __future__ import annotations

import builtins
import contextlib
import fcntl
import os
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta

from .. import _C
from . import _rendezvous
from ._errors import DistNetworkError, DistStoreError, QueueEmptyError

_DEFAULT_TIMEOUT = timedelta(seconds=300)
_INT64 = range(-(2**63), 2**63)


def _encoded(value: str | bytes, what: str = "value") -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise TypeError(f"[store] expected the {what} to be str or bytes, got {type(value).__name__}")


def _key(key: str | bytes) -> bytes:
    return _encoded(key, "key")


def _keys(keys: Sequence[str | bytes]) -> list[bytes]:
    if isinstance(keys, str | bytes):
        raise TypeError(f"[store] expected a list of keys, got {type(keys).__name__}")
    return [_key(key) for key in keys]


def _integer(value: int) -> int:
    if not isinstance(value, int) or value not in _INT64:
        raise TypeError(f"[store] expected an int of 64 bits, got {value!r}")
    return value


def _pairs(keys: Sequence[str | bytes], values: Sequence[str | bytes]) -> list[tuple[bytes, bytes]]:
    keys, values = _keys(keys), [_encoded(value) for value in values]
    if len(keys) != len(values):
        raise DistStoreError("multiSet keys and values vectors must be of same size")
    return list(zip(keys, values, strict=True))


def _names(keys: Sequence[bytes]) -> str:
    shown = ", ".join(f"'{key.decode(errors='replace')}'" for key in keys[:8])
    return shown + (f" and {len(keys) - 8} more" if len(keys) > 8 else "")


def _timed_out(timeout: timedelta, missing: Sequence[bytes]) -> DistStoreError:
    return DistStoreError(
        f"[store] wait timeout after {timeout / timedelta(milliseconds=1):g} ms, keys: {_names(missing)}"
    )


def _sum(key: bytes, value: bytes, amount: int) -> bytes:
    """The value after add()."""
    try:
        total = int(value) + amount
    except ValueError:
        raise DistStoreError(
            f"[store] add: expected an integer as the value of {_names([key])}, got {value!r}"
        ) from None
    if total not in _INT64:
        raise DistStoreError(f"[store] add: {value.decode()} + {amount} for {_names([key])} exceeds 64 bits")
    return str(total).encode()


class Store:
    """The base of all stores. Keys are str; values are str or bytes, and are returned as bytes.

    A subclass defines at least set(), get(), add(), check(), delete_key(), num_keys() and wait().
    """

    def __init__(self) -> None:
        self._timeout = _DEFAULT_TIMEOUT

    @property
    def timeout(self) -> timedelta:
        """The time after which get() and wait() fail."""
        return self.__dict__.get("_timeout", _DEFAULT_TIMEOUT)

    def set_timeout(self, timeout: timedelta) -> None:
        if not isinstance(timeout, timedelta):
            raise TypeError(f"[store] expected a timedelta, got {type(timeout).__name__}")
        self._timeout = timeout

    def _resolve(self, timeout: timedelta | None) -> timedelta:
        if timeout is None:
            return self.timeout
        if isinstance(timeout, int | float) and not isinstance(timeout, bool):
            return timedelta(seconds=timeout)
        if not isinstance(timeout, timedelta):
            raise TypeError(f"[store] expected a timedelta, got {type(timeout).__name__}")
        return timeout

    def set(self, key: str, value: str | bytes) -> None:
        raise NotImplementedError("set")

    def get(self, key: str) -> bytes:
        """Waits until the key exists."""
        raise NotImplementedError("get")

    def add(self, key: str, value: int) -> int:
        """Adds to the integer at the key, 0 if it does not exist, and returns the sum."""
        raise NotImplementedError("add")

    def append(self, key: str, value: str | bytes) -> None:
        raise NotImplementedError("append")

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Sets the key if its value is `expected_value`, which is empty for a key that does not exist. Returns the value
        after the call; `expected_value` if the key does not exist."""
        raise NotImplementedError("compare_set")

    def check(self, keys: list[str]) -> bool:
        """Whether all keys exist. Does not wait."""
        raise NotImplementedError("check")

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        """Waits until all keys exist."""
        raise NotImplementedError("wait")

    def delete_key(self, key: str) -> bool:
        """Whether the key existed."""
        raise NotImplementedError("delete_key")

    def num_keys(self) -> int:
        raise NotImplementedError("num_keys")

    def multi_get(self, keys: list[str]) -> list[bytes]:
        return [self.get(key) for key in keys]

    def multi_set(self, keys: list[str], values: list[str | bytes]) -> None:
        _pairs(keys, values)
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def list_keys(self) -> list[str]:
        raise NotImplementedError("list_keys support is not implemented.")

    def queue_push(self, key: str, value: str | bytes) -> None:
        raise NotImplementedError("queue support is not implemented.")

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        raise NotImplementedError("queue support is not implemented.")

    def queue_len(self, key: str) -> int:
        raise NotImplementedError("queue support is not implemented.")

    def barrier(self, key: str, world_size: int, timeout: timedelta | None = None) -> None:
        """Waits until `world_size` callers have called it with this key."""
        if self.add(f"{key}/count", 1) == world_size:
            self.set(f"{key}/last", "1")
        self.wait([f"{key}/last"], self._resolve(timeout))

    def has_extended_api(self) -> bool:
        """Whether append(), multi_get() and multi_set() are single operations."""
        return False

    def clone(self) -> Store:
        """A store with the same keys that another thread can use."""
        raise NotImplementedError("clone")


class HashStore(Store):
    """A store in this process, for its threads."""

    def __init__(self) -> None:
        super().__init__()
        self._pairs: dict[bytes, bytes] = {}
        self._queues: dict[bytes, deque[bytes]] = {}
        self._changed = threading.Condition()

    def _wait_for(self, condition: Callable[[], bool], timeout: timedelta, missing: Callable[[], list[bytes]]) -> None:
        """Waits with the lock held."""
        if not self._changed.wait_for(condition, min(timeout.total_seconds(), threading.TIMEOUT_MAX)):
            raise _timed_out(timeout, missing())

    def _wait_for_keys(self, keys: list[bytes], timeout: timedelta) -> None:
        def missing() -> list[bytes]:
            return [key for key in keys if key not in self._pairs and not self._queues.get(key)]

        self._wait_for(lambda: not missing(), timeout, missing)

    def set(self, key: str, value: str | bytes) -> None:
        self.multi_set([key], [value])

    def multi_set(self, keys: list[str], values: list[str | bytes]) -> None:
        pairs = _pairs(keys, values)
        with self._changed:
            self._pairs.update(pairs)
            self._changed.notify_all()

    def get(self, key: str) -> bytes:
        return self.multi_get([key])[0]

    def multi_get(self, keys: list[str]) -> list[bytes]:
        keys = _keys(keys)
        with self._changed:
            self._wait_for_keys(keys, self.timeout)
            return [self._pairs[key] for key in keys]

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        with self._changed:
            self._wait_for_keys(_keys(keys), self._resolve(timeout))

    def add(self, key: str, value: int) -> int:
        name, amount = _key(key), _integer(value)
        with self._changed:
            self._pairs[name] = _sum(name, self._pairs.get(name, b"0"), amount)
            self._changed.notify_all()
            return int(self._pairs[name])

    def append(self, key: str, value: str | bytes) -> None:
        name, more = _key(key), _encoded(value)
        with self._changed:
            self._pairs[name] = self._pairs.get(name, b"") + more
            self._changed.notify_all()

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        name, expected, desired = _key(key), _encoded(expected_value), _encoded(desired_value)
        with self._changed:
            if self._pairs.get(name, b"") != expected:
                return self._pairs.get(name, expected)
            self._pairs[name] = desired
            self._changed.notify_all()
            return desired

    def check(self, keys: list[str]) -> bool:
        with self._changed:
            return all(key in self._pairs or self._queues.get(key) for key in _keys(keys))

    def delete_key(self, key: str) -> bool:
        with self._changed:
            return self._pairs.pop(_key(key), None) is not None

    def num_keys(self) -> int:
        with self._changed:
            return len(self._pairs)

    def list_keys(self) -> list[str]:
        with self._changed:
            return [key.decode(errors="replace") for key in self._pairs]

    def queue_push(self, key: str, value: str | bytes) -> None:
        name, item = _key(key), _encoded(value)
        with self._changed:
            self._queues.setdefault(name, deque()).append(item)
            self._changed.notify_all()

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        name = _key(key)
        with self._changed:
            if not block and not self._queues.get(name):
                raise QueueEmptyError("queue is empty")
            self._wait_for(lambda: bool(self._queues.get(name)), self.timeout, lambda: [name])
            queue = self._queues[name]
            item = queue.popleft()
            if not queue:
                del self._queues[name]
            return item

    def queue_len(self, key: str) -> int:
        with self._changed:
            return len(self._queues.get(_key(key), ()))

    def has_extended_api(self) -> bool:
        return True

    def clone(self) -> HashStore:
        return self


class PrefixStore(Store):
    """Another store, with ``prefix/`` before each key."""

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__()
        if not isinstance(prefix, str) or not isinstance(store, Store):
            raise TypeError(
                f"[PrefixStore] expected a str and a Store, got {type(prefix).__name__} and {type(store).__name__}"
            )
        self._prefix, self._store = prefix, store

    @property
    def underlying_store(self) -> Store:
        return self._store

    @property
    def _underlying_non_prefix_store(self) -> Store:
        store = self._store
        while isinstance(store, PrefixStore):
            store = store._store
        return store

    @property
    def timeout(self) -> timedelta:
        return self._store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        self._store.set_timeout(timeout)

    def _full(self, key: str | bytes) -> str | bytes:
        if isinstance(key, str):
            return f"{self._prefix}/{key}"
        return f"{self._prefix}/".encode() + _key(key)

    def _all_full(self, keys: Sequence[str | bytes]) -> list[str | bytes]:
        _keys(keys)
        return [self._full(key) for key in keys]

    def set(self, key: str, value: str | bytes) -> None:
        self._store.set(self._full(key), value)

    def get(self, key: str) -> bytes:
        return self._store.get(self._full(key))

    def add(self, key: str, value: int) -> int:
        return self._store.add(self._full(key), value)

    def append(self, key: str, value: str | bytes) -> None:
        self._store.append(self._full(key), value)

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        return self._store.compare_set(self._full(key), expected_value, desired_value)

    def check(self, keys: list[str]) -> bool:
        return self._store.check(self._all_full(keys))

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        if timeout is None:
            self._store.wait(self._all_full(keys))
        else:
            self._store.wait(self._all_full(keys), timeout)

    def delete_key(self, key: str) -> bool:
        return self._store.delete_key(self._full(key))

    def num_keys(self) -> int:
        """The number of the underlying store's keys, with and without the prefix."""
        return self._store.num_keys()

    def multi_get(self, keys: list[str]) -> list[bytes]:
        return self._store.multi_get(self._all_full(keys))

    def multi_set(self, keys: list[str], values: list[str | bytes]) -> None:
        self._store.multi_set(self._all_full(keys), values)

    def list_keys(self) -> list[str]:
        start = f"{self._prefix}/"
        return [key.removeprefix(start) for key in self._store.list_keys() if key.startswith(start)]

    def queue_push(self, key: str, value: str | bytes) -> None:
        self._store.queue_push(self._full(key), value)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        return self._store.queue_pop(self._full(key), block)

    def queue_len(self, key: str) -> int:
        return self._store.queue_len(self._full(key))

    def has_extended_api(self) -> bool:
        return self._store.has_extended_api()

    def clone(self) -> PrefixStore:
        return PrefixStore(self._prefix, self._store.clone())


class FileStore(Store):
    """A store in a file that all ranks see, with locks (fcntl). If `world_size` is given, the file is removed when this
    number of stores has been deleted and no other is open.

    Waits read the file every 10 ms. The file must not be left over from an earlier run.
    """

    _COUNT = b"refcount"  # the numbers of stores that are open and that have been deleted

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self._path, self._world_size = os.fspath(file_name), world_size
        self._position, self._pairs = 0, {}  # what has been read of the file
        self._lock = threading.Lock()
        self._open = True
        self._update(self._COUNT, lambda count: self._counts(count, 1, 0))

    @staticmethod
    def _counts(value: bytes | None, opened: int, deleted: int) -> bytes:
        before = [int(number) for number in (value or b"0 0").split()]
        return f"{before[0] + opened} {before[1] + deleted}".encode()

    @property
    def path(self) -> str:
        return self._path

    # The file consists of records: the lengths of the key and of the value, both as 32 bits, the key and the value. A
    # later record of a key replaces an earlier one; the length 2**32 - 1 removes the key.
    _LENGTHS, _REMOVED = struct.Struct("<II"), 2**32 - 1

    @contextlib.contextmanager
    def _file(self, exclusive: bool) -> Iterator[int]:
        with self._lock:
            try:
                fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError as error:
                raise DistStoreError(f"[FileStore] cannot open {self._path}: {error.strerror}") from None
            try:
                fcntl.flock(fd, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
                self._read(fd)
                yield fd
            finally:
                os.close(fd)

    def _read(self, fd: int) -> None:
        size = os.fstat(fd).st_size
        if size < self._position:  # removed, and created again
            self._position, self._pairs = 0, {}
        data = os.pread(fd, size - self._position, self._position)
        start = 0
        while start + self._LENGTHS.size <= len(data):
            key_size, value_size = self._LENGTHS.unpack_from(data, start)
            removed = value_size == self._REMOVED
            middle = start + self._LENGTHS.size + key_size
            end = middle + (0 if removed else value_size)
            if end > len(data):
                break  # a writer was killed; the next one truncates the record
            key = data[middle - key_size : middle]
            if removed:
                self._pairs.pop(key, None)
            else:
                self._pairs[key] = data[middle:end]
            start = end
        self._position += start

    def _write(self, fd: int, pairs: Sequence[tuple[bytes, bytes | None]]) -> None:
        data = b"".join(
            self._LENGTHS.pack(len(key), self._REMOVED if value is None else len(value)) + key + (value or b"")
            for key, value in pairs
        )
        os.ftruncate(fd, self._position)
        written = 0
        while written < len(data):
            written += os.pwrite(fd, data[written:], self._position + written)
        self._read(fd)

    def _update(self, key: bytes, change: Callable[[bytes | None], bytes | None]) -> bytes | None:
        """Sets the key to change(its value), unless that is None, and returns it."""
        with self._file(exclusive=True) as fd:
            value = change(self._pairs.get(key))
            if value is not None:
                self._write(fd, [(key, value)])
            return value

    # The count's key has no prefix, so that it differs from every key of the user.
    @staticmethod
    def _name(key: str | bytes) -> bytes:
        return b"/" + _key(key)

    def set(self, key: str, value: str | bytes) -> None:
        new = _encoded(value)
        self._update(self._name(key), lambda _: new)

    def multi_set(self, keys: list[str], values: list[str | bytes]) -> None:
        pairs = [(self._name(key), value) for key, value in _pairs(keys, values)]
        with self._file(exclusive=True) as fd:
            self._write(fd, pairs)

    def _wait_for_keys(self, keys: list[bytes], timeout: timedelta) -> list[bytes]:
        deadline = time.monotonic() + timeout.total_seconds()
        while True:
            with self._file(exclusive=False):
                missing = [key for key in keys if key not in self._pairs]
                if not missing:
                    return [self._pairs[key] for key in keys]
            if time.monotonic() >= deadline:
                raise _timed_out(timeout, [key[1:] for key in missing])
            time.sleep(0.01)

    def get(self, key: str) -> bytes:
        return self._wait_for_keys([self._name(key)], self.timeout)[0]

    def multi_get(self, keys: list[str]) -> list[bytes]:
        return self._wait_for_keys([self._name(key) for key in _keys(keys)], self.timeout)

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        self._wait_for_keys([self._name(key) for key in _keys(keys)], self._resolve(timeout))

    def add(self, key: str, value: int) -> int:
        name, amount = self._name(key), _integer(value)
        return int(self._update(name, lambda old: _sum(name[1:], b"0" if old is None else old, amount)))

    def append(self, key: str, value: str | bytes) -> None:
        more = _encoded(value)
        self._update(self._name(key), lambda old: (old or b"") + more)

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        expected, desired = _encoded(expected_value), _encoded(desired_value)
        result = expected

        def change(old: bytes | None) -> bytes | None:
            nonlocal result
            result = desired if (old or b"") == expected else expected if old is None else old
            return desired if (old or b"") == expected else None

        self._update(self._name(key), change)
        return result

    def check(self, keys: list[str]) -> bool:
        with self._file(exclusive=False):
            return all(self._name(key) in self._pairs for key in _keys(keys))

    def delete_key(self, key: str) -> bool:
        name = self._name(key)
        with self._file(exclusive=True) as fd:
            existed = name in self._pairs
            if existed:
                self._write(fd, [(name, None)])
            return existed

    def num_keys(self) -> int:
        """The number of keys, and one more: the file contains the number of its ranks, as PyTorch's does."""
        with self._file(exclusive=False):
            return len(self._pairs)

    def list_keys(self) -> list[str]:
        with self._file(exclusive=False):
            return [key[1:].decode(errors="replace") for key in self._pairs if key != self._COUNT]

    def clone(self) -> FileStore:
        return FileStore(self._path, self._world_size)

    def _close(self) -> None:
        if not self.__dict__.get("_open"):
            return
        self._open = False
        with self._file(exclusive=True) as fd:
            counts = self._counts(self._pairs.get(self._COUNT), -1, 1)
            opened, deleted = (int(number) for number in counts.split())
            if opened <= 0 and 0 <= self._world_size <= deleted:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self._path)
            else:
                self._write(fd, [(self._COUNT, counts)])

    def __del__(self) -> None:
        with contextlib.suppress(builtins.Exception):
            self._close()


_INIT = "init/"  # as in PyTorch, a key that num_keys() counts
_READY = "init/ready"  # removed by the master


class TCPStore(Store):
    """A store that an engine serves on a TCP port.

    With `is_master`, this session's engine serves it, until the session ends; port 0 selects a free port. The engine
    listens on all interfaces of its host, or on the loopback interface only if `host_name` is a loopback address. All
    processes need the same token: ``TELETENSOR_GROUP_TOKEN``, else that of the user's file ``teletensor/group-token`` in
    ``XDG_CONFIG_HOME``, which is created on first use.

    `world_size` and `wait_for_workers`: the master waits in the constructor until this number of processes, with it, have
    connected. `multi_tenant`, `master_listen_fd` and `use_libuv` have no meaning here: a port that this session serves is
    shared by all stores of the session, and a given descriptor is refused.

    Raises:
        DistNetworkError: the store cannot be reached within the timeout.
        DistStoreError: a key or a process is missing after the timeout.
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = _DEFAULT_TIMEOUT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool | None = None,
    ) -> None:
        super().__init__()
        del multi_tenant, use_libuv
        if not isinstance(port, int) or not 0 <= port < 2**16:
            raise TypeError(f"[TCPStore] expected a port from 0 to 65535, got {port!r}")
        if master_listen_fd is not None:
            raise NotImplementedError("[TCPStore] master_listen_fd: the engine, not this process, opens the port")
        if world_size == 0:
            raise ValueError("TCPStore world size cannot be 0")
        self.set_timeout(timeout)
        token = _rendezvous._group_token()
        if is_master:
            port = _rendezvous._serve(_listening_host(host_name), port, token)
        elif port == 0:
            raise DistNetworkError("[TCPStore] expected the master's port, got 0")
        self._host, self._port, self._token = host_name, port, token
        self._connect()
        if world_size is not None and world_size > 0 and wait_for_workers:
            self._meet(world_size, is_master)

    def _connect(self) -> None:
        host = f"[{self._host}]" if ":" in self._host else self._host
        with self._errors():
            self._remote = _C.RemoteStore(f"{host}:{self._port}", self._token, self._seconds(self.timeout))

    def _meet(self, world_size: int, is_master: bool) -> None:
        count = self.add(_INIT, 1)
        if count == world_size:
            self.set(_READY, b"1")
        if not is_master:
            return
        try:
            self.wait([_READY], self.timeout)
            self.delete_key(_READY)
        except DistStoreError:
            raise DistStoreError(
                f"Timed out after {self.timeout.total_seconds():g} seconds waiting for clients. "
                f"{int(self.get(_INIT))}/{world_size} clients joined."
            ) from None

    @staticmethod
    def _seconds(timeout: timedelta) -> float:
        return max(timeout.total_seconds(), 0.0)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Converts errors to PyTorch's."""
        try:
            yield
        except TimeoutError as error:
            raise DistStoreError(str(error)) from None
        except (ConnectionError, PermissionError) as error:
            raise DistNetworkError(str(error)) from None
        except ValueError as error:
            raise DistStoreError(str(error)) from None

    @property
    def host(self) -> str:
        return self._host

    @property
    def port(self) -> int:
        return self._port

    def set(self, key: str, value: str | bytes) -> None:
        self.multi_set([key], [value])

    def multi_set(self, keys: list[str], values: list[str | bytes]) -> None:
        pairs = _pairs(keys, values)
        with self._errors():
            self._remote.set([key for key, _ in pairs], [value for _, value in pairs])

    def get(self, key: str) -> bytes:
        return self.multi_get([key])[0]

    def multi_get(self, keys: list[str]) -> list[bytes]:
        with self._errors():
            return self._remote.get(_keys(keys), self._seconds(self.timeout))

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        with self._errors():
            self._remote.wait(_keys(keys), self._seconds(self._resolve(timeout)))

    def add(self, key: str, value: int) -> int:
        with self._errors():
            return self._remote.add(_key(key), _integer(value))

    def append(self, key: str, value: str | bytes) -> None:
        with self._errors():
            self._remote.append(_key(key), _encoded(value))

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        with self._errors():
            return self._remote.compare_set(_key(key), _encoded(expected_value), _encoded(desired_value))

    def check(self, keys: list[str]) -> bool:
        with self._errors():
            return self._remote.check(_keys(keys))

    def delete_key(self, key: str) -> bool:
        with self._errors():
            return self._remote.erase(_key(key))

    def num_keys(self) -> int:
        """The number of keys, and one more if `world_size` was given: the number of processes, as in PyTorch."""
        with self._errors():
            return self._remote.size()

    def has_extended_api(self) -> bool:
        return True

    def clone(self) -> TCPStore:
        copy = TCPStore.__new__(TCPStore)
        Store.__init__(copy)
        copy._timeout, copy._host, copy._port, copy._token = self.timeout, self._host, self._port, self._token
        copy._connect()
        return copy

    def __repr__(self) -> str:
        return f"TCPStore({self._host}:{self._port})"


def _listening_host(host: str) -> str:
    if host == "localhost":
        return "127.0.0.1"
    if _rendezvous._is_loopback(host):
        return host
    return "::" if ":" in host else "0.0.0.0"  # noqa: S104 - the token protects the store


for _class in (Store, HashStore, PrefixStore, FileStore, TCPStore):
    _class.__module__ = "teletensor.distributed"
