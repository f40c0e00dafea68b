"""The end of an asynchronous save: the ranks report to the coordinator through the group's store.

No collective is used, since collectives would hold up the session's training. A rank that stops reporting for the group's
timeout is considered lost.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

_POLL = 0.05  # seconds


class Reports:
    """What the ranks write to the store: a counter while they write, then "done", or "error" with its text."""

    def __init__(self, store, prefix: str, rank: int, size: int, timeout: float):
        self._store, self._prefix, self._rank, self._size, self._timeout = store, prefix, rank, size, timeout
        self._beats = 0
        self._last_beat = 0.0

    def _key(self, rank: int | str) -> str:
        return f"{self._prefix}/{rank}"

    def _read(self, key: str):
        return json.loads(self._store.get(key)) if self._store.check([key]) else None

    def beat(self) -> None:
        """Reports that this rank is alive, at most once per second."""
        if time.monotonic() - self._last_beat >= 1:
            self._beats += 1
            self._store.set(self._key(self._rank), json.dumps(["busy", self._beats]))
            self._last_beat = time.monotonic()

    def _await(self, key: str, is_final: Callable, beats_of: str, name: str):
        last, since = None, time.monotonic()
        while True:
            if is_final(value := self._read(key)):
                return value
            beat = value if key == beats_of else self._read(beats_of)
            if beat != last:
                last, since = beat, time.monotonic()
            elif time.monotonic() - since > self._timeout:
                raise RuntimeError(f"[async_save] {name} did not report for {self._timeout:g} s")
            self.beat()
            time.sleep(_POLL)

    def finish(self, error: str | None, complete: Callable[[], None]) -> None:
        """Reports this rank's outcome; the coordinator calls `complete` once all ranks have succeeded.

        Raises:
            RuntimeError: a rank failed, or `complete` did.
        """
        if self._rank != 0:
            self._store.set(self._key(self._rank), json.dumps(["done" if error is None else "error", error]))
            kind, text = self._await(self._key("result"), lambda v: v is not None, self._key(0), "rank 0")
        else:
            kind, text = self._coordinate(error, complete)
            self._store.set(self._key("result"), json.dumps([kind, text]))
        if kind == "error":
            raise RuntimeError(f"[async_save] {text}")

    def _coordinate(self, error: str | None, complete: Callable[[], None]) -> tuple[str, str | None]:
        failures = [] if error is None else [f"rank 0: {error}"]
        try:
            for rank in range(1, self._size):
                key = self._key(rank)
                kind, text = self._await(key, lambda v: v is not None and v[0] != "busy", key, f"rank {rank}")
                if kind == "error":
                    failures.append(f"rank {rank}: {text}")
            if not failures:
                complete()
        except Exception as e:  # noqa: BLE001 - reported to all ranks
            failures.append(f"rank 0: {e}")
        return ("error", "; ".join(failures)) if failures else ("done", None)
