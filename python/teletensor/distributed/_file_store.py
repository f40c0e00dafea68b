"""FileStore: a store in a file."""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta

from ._errors import DistStoreError
from ._store_base import Store, _encoded, _integer, _key, _keys, _pairs, _sum, _timed_out


class FileStore(Store):
    """A store in a file that all ranks see, with locks (fcntl). If `world_size` is given, the file is removed when this
    number of stores has been deleted and no other is open.

    Waits read the file every 10 ms. The file must not be left over from an earlier run.
    """

    _COUNT = b"refcount"  # the numbers of stores that are open and that have been deleted

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self._path, self._world_size = os.fspath(file_name), world_size
        self._position, self._pairs = 0, {}  # position up to which the file was read, and its pairs
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
        """The number of keys plus one: as in PyTorch, the file also contains the number of its ranks."""
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
        with contextlib.suppress(Exception):
            self._close()
