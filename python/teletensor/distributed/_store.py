"""Stores: keys and values that the ranks of a run share, with PyTorch's interface.

``TCPStore`` is served by an engine, ``FileStore`` by a file, ``HashStore`` by this process; ``PrefixStore`` adds a prefix
to another store's keys.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from datetime import timedelta

from .. import _C
from .._lazy import set_module
from . import _serving
from ._errors import DistNetworkError, DistStoreError
from ._file_store import FileStore
from ._hash_store import HashStore
from ._store_base import _DEFAULT_TIMEOUT, Store, _encoded, _integer, _key, _keys, _pairs

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"]


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
        token = _serving.group_token()
        if is_master:
            port = _serving.serve(_listening_host(host_name), port, token)
            _serving.of_groups.discard((_listening_host(host_name), port))
        elif port == 0:
            raise DistNetworkError("[TCPStore] expected the master's port, got 0")
        self._host, self._port, self._token = host_name, port, token
        self._connect()
        if world_size is not None and world_size > 0 and wait_for_workers:
            self._wait_for_workers(world_size, is_master)

    def _connect(self) -> None:
        host = f"[{self._host}]" if ":" in self._host else self._host
        with self._errors():
            self._remote = _C.RemoteStore(f"{host}:{self._port}", self._token, self._seconds(self.timeout))

    def _wait_for_workers(self, world_size: int, is_master: bool) -> None:
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
        """The number of keys; if `world_size` was given plus one, for the number of processes, as in PyTorch."""
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
    if _serving.is_loopback(host):
        return host
    return "::" if ":" in host else "0.0.0.0"  # noqa: S104 - the token protects the store


set_module("teletensor.distributed", HashStore, FileStore, TCPStore)
set_module("teletensor.distributed.distributed_c10d", PrefixStore)
