"""HashStore: a store in this process."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from datetime import timedelta

from ._errors import QueueEmptyError
from ._store_base import Store, _encoded, _integer, _key, _keys, _pairs, _sum, _timed_out


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
