"""The base of all stores, and the conversions that they share."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from .._lazy import set_module
from ._errors import DistStoreError

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


set_module("teletensor.distributed.distributed_c10d", Store)
