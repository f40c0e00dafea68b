"""The columns of the tables of ``teletensor status`` and ``top``: a text and a key to sort by for each device, session and
principal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ._status_history import History


def size(n: float) -> str:
    """Bytes as text: 1.5 GiB."""
    value = float(n)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return ""


def duration(seconds: float) -> str:
    """Seconds as text: 5 min."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def device_name(number: int, type_name: str = "") -> str:
    """Decodes the device number used in instructions; `type_name` is that of a device of a device library."""
    return "cpu" if number == 0 else f"{type_name or 'cuda'}:{number & 0xFF}"


def devices_of(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The engine's devices, those of device libraries last."""
    return [*status["devices"], *status.get("plugin_devices", ())]


class Column(NamedTuple):
    """A column. Both functions take what the row shows and the history."""

    name: str
    text: Callable[[Mapping[str, Any], History], str]
    key: Callable[[Mapping[str, Any], History], Any]
    is_text: bool = False  # ascending unless reversed, and to the left
    is_history: bool = False  # empty without a history


def _number(name: str, key: Callable, text: Callable[[Any], str] = str) -> Column:
    return Column(name, lambda row, history: text(key(row, history)), key)


def _text(name: str, text: Callable) -> Column:
    return Column(name, text, lambda row, history: text(row, history).lower(), is_text=True)


def _history(name: str, field: str, key: Callable, *, rate: bool = False) -> Column:
    """The last minute of a value: a sparkline, sorted by the present value."""
    what, _, value = field.partition(".")
    return Column(
        name, lambda row, history: history.sparkline(what, _identity(what, row), value),
        (lambda row, history: history.rate(what, _identity(what, row), value)) if rate else key, is_history=True,
    )  # fmt: skip


def _identity(what: str, row: Mapping[str, Any]) -> str:
    return str(row["device"]["device"] if what == "device" else row["name"] if what == "principal" else row["id"])


def _field(name: str) -> Callable:
    return lambda row, history: int(row[name])


def _field_or_0(name: str) -> Callable:
    """A number that older engines do not report."""
    return lambda row, history: int(row.get(name, 0))


def _memory(name: str) -> Callable:
    return lambda row, history: int(row["memory"][name])


def _size_or_none(n: int) -> str:
    return size(n) if n else "none"


def _describe_device(row: Mapping[str, Any], _history: History) -> str:
    info = row["device"]
    gpu = f", capability {info['compute_capability']}, driver {info['driver']}" if info["compute_capability"] else ""
    if info.get("type_name"):
        calls = f", {int(row['kernel_calls']):,} calls, {int(row['fallback_calls']):,} on the cpu"
        return f"{info['name']}, version {info['driver']}{calls}"
    return info["name"] + gpu


def _state(row: Mapping[str, Any], _history: History) -> str:
    return row["state"] + (f" {row['queue_position']}" if row["queue_position"] else "")


DEVICES = tuple([
    _text("device", lambda row, history: device_name(int(row["device"]["device"]), row["device"].get("type_name", ""))),
    _text("name", _describe_device),
    _number("allocated", _memory("allocated"), size),
    _history("allocated 1m", "device.allocated", _memory("allocated")),
    _number("reserved", _memory("reserved"), size),
    _number("limit", _memory("limit"), _size_or_none),
    _number("memory", lambda row, history: int(row["device"]["total_memory"]), size),
    _number("out of memory", _memory("out_of_memory")),
    _number("active", _memory("active"), size),
    _number("peak", _memory("peak_allocated"), size),
])  # fmt: skip
SESSIONS = tuple([
    _number("id", lambda row, history: int(row["id"])),
    _text("client", lambda row, history: row["client"]),
    _text("link", lambda row, history: "up" if row["connected"] else "lost"),
    _number("held", _field("held_bytes"), size),
    _number("limit", _field("limit_bytes"), _size_or_none),
    _text("state", _state),
    _number("waited", lambda row, history: float(row["waited_seconds"]), duration),
    _number("per s", lambda row, history: history.rate("session", str(row["id"]), "instructions"), "{:,.0f}".format),
    _text("principal", lambda row, history: row["principal"]),
    _number("failed", _field("failed")),
    _number("age", lambda row, history: float(row["age_seconds"]), duration),
    _number("peak", _field("peak_bytes"), size),
    _number("handles", _field("handles")),
    _number("instructions", _field("instructions")),
    _number("replayed", _field("replayed")),
    _number("programs", _field_or_0("programs")),
    _number("program runs", _field_or_0("program_runs")),
    _number("windows", _field_or_0("windows")),
    _number("window runs", _field_or_0("window_runs")),
    _number("saved", _field_or_0("window_instructions")),
    _history("held 1m", "session.held", _field("held_bytes")),
    _history("per s 1m", "session.instructions", _field("id"), rate=True),
])  # fmt: skip
PRINCIPALS = tuple([
    _number("sessions", _field("sessions")),
    _text("name", lambda row, history: row["name"]),
    _text("class", lambda row, history: row["priority"]),
    _number("weight", _field("weight")),
    _number("CPU", lambda row, history: float(row["cpu_seconds"]), lambda n: f"{n:.1f} s" if n < 100 else f"{n:,.0f} s"),
    _number("queue", lambda row, history: row["queued"]),
    _number("held", lambda row, history: int(row["held_bytes"]) + int(row["bookkeeping_bytes"]), size),
    _number("limit", _field("memory_limit"), _size_or_none),
    _number("cores", lambda row, history: history.rate("principal", row["name"], "cpu"), "{:.2f}".format),
    _history("cores 1m", "principal.cpu", _field("weight"), rate=True),
    _history("held 1m", "principal.held", _field("held_bytes")),
    _number("handles", _field("handles")),
    _number("transfers", _field("transfers")),
    _number("host limit", _field("host_memory_limit"), _size_or_none),
    _number("GPU limit", _field("gpu_memory_limit"), _size_or_none),
])  # fmt: skip
# The order in which `top` shows the columns of sessions: those that do not fit are on the next page.
TOP_SESSIONS = (
    "id", "client", "held", "held 1m", "per s", "per s 1m", "state", "link", "limit", "waited", "principal", "failed", "age", "peak",
    "handles", "instructions", "replayed", "programs", "program runs", "windows", "window runs", "saved",
)  # fmt: skip


def principals(status: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The principals of a status, with the number of their sessions that wait for a turn."""
    waiting = [session["principal"] for session in status["sessions"] if session["state"] == "queued"]
    return [{**each, "queued": waiting.count(each["name"])} for each in status.get("principals", ())]


class Order(NamedTuple):
    """By which column a table is sorted."""

    column: str
    is_reversed: bool = False

    def apply(self, rows: Sequence[Mapping[str, Any]], columns: Sequence[Column], history: History) -> list[Mapping[str, Any]]:
        """Sorts numbers with the greatest first, except ids, and texts alphabetically; the other way if reversed."""
        column = next(column for column in columns if column.name == self.column)
        descending = not column.is_text and column.name != "id"
        return sorted(rows, key=lambda row: column.key(row, history), reverse=descending != self.is_reversed)
