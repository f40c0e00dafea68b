"""What an engine's status was in the last minute: the rates and sparklines of ``teletensor top``."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

_BARS = "▁▂▃▄▅▆▇█"


class History:
    """Averages of the last minute in CELLS parts, for each value of each session, device and principal that exists now.

    add() is called with every status; its memory does not depend on how often. Values are named by what they belong to:
    ``("session", "7", "held")``.
    """

    CELLS = 10
    _CELL_SECONDS = 60 / CELLS

    def __init__(self):
        self._cells: dict[tuple, deque[list]] = {}  # by name: [number of the part, sum, count], the oldest first
        self._counts: dict[tuple, float] = {}  # the last values of counters
        self._rates: dict[tuple, float] = {}
        self._at = 0.0
        self._engine: tuple | None = None

    def add(self, status: Mapping[str, Any], now: float) -> None:
        """Adds a reply of ``Admin.Status``, received at the time `now` of a monotonic clock."""
        engine = (status["pid"], now - status["uptime_seconds"])
        if self._engine and (engine[0] != self._engine[0] or abs(engine[1] - self._engine[1]) > 60):
            self.__init__()  # another engine has taken over the address
        self._engine = engine
        counts = dict(_counters(status))
        passed = now - self._at
        if passed > 0:
            self._rates = {name: max(0.0, n - self._counts[name]) / passed for name, n in counts.items() if name in self._counts}
        self._counts, self._at = counts, now
        values = {**dict(_levels(status)), **self._rates}
        for name in [*self._cells]:
            if name not in values and name not in counts:
                del self._cells[name]
        part = int(now / self._CELL_SECONDS)
        for name, value in values.items():
            cells = self._cells.setdefault(name, deque(maxlen=self.CELLS))
            if not cells or cells[-1][0] != part:
                cells.append([part, 0.0, 0])
            cells[-1][1] += value
            cells[-1][2] += 1

    def rate(self, *name: str) -> float:
        """How much a counter grew per second between the last two statuses; 0 if it is not known."""
        return self._rates.get(name, 0.0)

    def sparkline(self, *name: str) -> str:
        """The last minute as bars, whose height is relative to the greatest one; blank where nothing was known."""
        part = int(self._at / self._CELL_SECONDS)
        values = {number: total / count for number, total, count in self._cells.get(name, ())}
        known = [values.get(number) for number in range(part - self.CELLS + 1, part + 1)]
        greatest = max((value for value in known if value is not None), default=0)
        top = len(_BARS) - 1
        return "".join(" " if v is None else _BARS[round(v / greatest * top) if greatest > 0 else 0] for v in known)


def _counters(status: Mapping[str, Any]) -> Iterator[tuple[tuple, float]]:
    """Values that only grow, of which rates are shown."""
    instructions = 0
    for session in status["sessions"]:
        yield ("session", str(session["id"]), "instructions"), int(session["instructions"])
        instructions += int(session["instructions"])
    yield ("engine", "", "instructions"), instructions
    for principal in status.get("principals", ()):
        yield ("principal", principal["name"], "cpu"), float(principal["cpu_seconds"])


def _levels(status: Mapping[str, Any]) -> Iterator[tuple[tuple, float]]:
    for session in status["sessions"]:
        yield ("session", str(session["id"]), "held"), int(session["held_bytes"])
    for device in [*status["devices"], *status.get("plugin_devices", ())]:
        yield ("device", str(device["device"]["device"]), "allocated"), int(device["memory"]["allocated"])
    for principal in status.get("principals", ()):
        yield ("principal", principal["name"], "held"), int(principal["held_bytes"])
