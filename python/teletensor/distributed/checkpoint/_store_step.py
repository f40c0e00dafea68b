"""The end of an asynchronous save: the ranks report to the coordinator through the group's store.

No collective is used, since collectives would hold up the session's training. A rank that stops reporting for the group's
timeout is considered lost.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable

_POLL = 0.05  # seconds


class Reports:
    """What the ranks write to the store: a counter while they wait, and an outcome: "done", or "error" with its text."""

    def __init__(self, store, prefix: str, rank: int, size: int, timeout: float):
        self._store, self._prefix, self._rank, self._size, self._timeout = store, prefix, rank, size, timeout
        self._beats = 0
        self._last_beat = -1.0

    def _key(self, kind: str, rank: int) -> str:
        return f"{self._prefix}/{kind}/{rank}"

    def _read(self, key: str):
        return json.loads(self._store.get(key)) if self._store.check([key]) else None

    def beat(self) -> None:
        """Reports that this rank is alive, at most once per second."""
        if time.monotonic() - self._last_beat >= 1:
            self._beats += 1
            self._store.set(self._key("beat", self._rank), json.dumps(self._beats))
            self._last_beat = time.monotonic()

    def _await(self, key: str, rank: int):
        """Waits until a rank has written the key."""
        last, since = None, time.monotonic()
        while (value := self._read(key)) is None:
            beat = self._read(self._key("beat", rank))
            if beat != last:
                last, since = beat, time.monotonic()
            elif time.monotonic() - since > self._timeout:
                raise RuntimeError(f"rank {rank} did not report for {self._timeout:g} s")
            self.beat()
            time.sleep(_POLL)
        return value

    def finish(self, error: str | None, complete: Callable[[], None]) -> None:
        """Reports this rank's outcome; the coordinator calls `complete` once all ranks have succeeded.

        Raises:
            RuntimeError: a rank failed, or `complete` did.
        """
        result = self._key("result", 0)
        if self._rank == 0:
            kind, text = self._coordinate(error, complete)
            self._store.set(result, json.dumps([kind, text]))
            for rank in range(1, self._size):  # this rank's engine may serve the store, and end after this call
                with contextlib.suppress(RuntimeError):
                    self._await(self._key("received", rank), rank)
        else:
            outcome = ["done" if error is None else "error", error]
            self._store.set(self._key("outcome", self._rank), json.dumps(outcome))
            kind, text = self._await(result, 0)
            self._store.set(self._key("received", self._rank), json.dumps(True))
        if kind == "error":
            raise RuntimeError(f"[async_save] {text}")

    def _coordinate(self, error: str | None, complete: Callable[[], None]) -> tuple[str, str | None]:
        failures = [] if error is None else [f"rank 0: {error}"]
        for rank in range(1, self._size):
            try:
                kind, text = self._await(self._key("outcome", rank), rank)
            except RuntimeError as e:
                kind, text = "error", str(e)
            if kind == "error":
                failures.append(f"rank {rank}: {text}")
        if not failures:
            try:
                complete()
            except Exception as e:  # noqa: BLE001 - reported to all ranks
                failures.append(f"rank 0: {e}")
        return ("error", "; ".join(failures)) if failures else ("done", None)
