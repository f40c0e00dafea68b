"""The tables of ``teletensor status`` and ``top``: as many columns and rows as the terminal has room for, and a line that
names what is not shown. Needs rich.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

# Columns in the order of importance: those that do not fit are on the next page. A table's names are on every page.
_DEVICE_COLUMNS = ("allocated", "reserved", "limit", "memory", "out of memory", "active", "peak")
_SESSION_COLUMNS = (
    "link", "held", "limit", "state", "waited", "per s", "principal", "failed", "age", "peak", "handles", "instructions", "replayed",
)  # fmt: skip
_DEVICE_NAMES, _SESSION_NAMES = ("device", "name"), ("id", "client")
_NAME_WIDTH = 16  # the least width of a name before columns are left out for it
_LEFT = ("device", "name", "client", "link", "principal", "state")


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


def _device_name(number: int) -> str:
    """Decodes the device number used in instructions."""
    return "cpu" if number == 0 else f"cuda:{number & 0xFF}"


def _device(d: Mapping[str, Any]) -> dict[str, str]:
    memory, limit, info = d["memory"], int(d["memory"]["limit"]), d["device"]
    name = info["name"]
    if info["compute_capability"]:
        name += f", capability {info['compute_capability']}, driver {info['driver']}"
    return {
        "device": _device_name(int(info["device"])), "name": name, "memory": size(info["total_memory"]),
        "allocated": size(memory["allocated"]), "active": size(memory["active"]), "reserved": size(memory["reserved"]),
        "peak": size(memory["peak_allocated"]), "limit": size(limit) if limit else "none",
        "out of memory": str(memory["out_of_memory"]),
    }  # fmt: skip


def _session(s: Mapping[str, Any], rate: float) -> dict[str, str]:
    limit = int(s["limit_bytes"])
    return {
        "id": str(s["id"]), "client": s["client"], "principal": s["principal"], "age": duration(s["age_seconds"]),
        "link": "up" if s["connected"] else "lost", "handles": str(s["handles"]), "held": size(s["held_bytes"]),
        "peak": size(s["peak_bytes"]), "limit": size(limit) if limit else "none", "instructions": str(s["instructions"]),
        "state": s["state"] + (f" {s['queue_position']}" if s["queue_position"] else ""), "waited": duration(s["waited_seconds"]),
        "per s": f"{rate:,.0f}", "replayed": str(s["replayed"]), "failed": str(s["failed"]),
    }  # fmt: skip


def _libraries(status: Mapping[str, Any]) -> list[str]:
    """Lines with the libraries that the devices have used so far, and the missing ones."""
    libraries = {library["name"]: library for device in status["devices"] for library in device["libraries"]}
    found = [f"{name} {library['version']}" for name, library in libraries.items() if library["version"]]
    missing = [f"{name} is missing: {library['missing']}" for name, library in libraries.items() if library["missing"]]
    return ([f"libraries: {', '.join(found)}"] if found else []) + missing


def _principals(status: Mapping[str, Any]) -> list[str]:
    """A line for each principal with limits: what its sessions hold together, and the limits."""
    lines = []
    for each in status.get("principals", ()):
        held, limits = int(each["held_bytes"]) + int(each["bookkeeping_bytes"]), []
        for field, where in (("memory_limit", ""), ("host_memory_limit", " on the host"), ("gpu_memory_limit", " on each GPU")):
            if int(each[field]):
                limits.append(f"{size(each[field])}{where}")
        for field in ("handle", "transfer"):
            if int(each[f"{field}_limit"]):
                limits.append(f"{each[f'{field}_limit']} {field}s (has {each[f'{field}s']})")
        if int(each["checkpoint_limit"]):
            limits.append(f"{size(each['checkpoint_limit'])} of checkpoints")
        if limits:
            lines.append(f"{each['name']}: {each['sessions']} sessions hold {size(held)}; limits: {', '.join(limits)}")
    return lines


def _workers(status: Mapping[str, Any]) -> list[str]:
    """A line for each process that serves a principal, if the engine isolates them."""
    lines = []
    for each in status.get("workers", ()):
        state = f"{each['sessions']} sessions, resident {size(each['resident_bytes'])}" if each["answers"] else "does not answer"
        lines.append(f"worker of {each['principal']}: pid {each['pid']}, {state}")
    return lines


def _width(column: str, rows: Sequence[Mapping[str, str]]) -> int:
    return max(len(column), *(len(row[column]) for row in rows)) if rows else len(column)


def _pages(names: Sequence[str], columns: Sequence[str], rows: Sequence[Mapping[str, str]], width: int) -> list[list[str]]:
    """Divides the columns among as few pages as hold them. At least one column is on each page."""
    label, name = names
    used = _width(label, rows) + min(_NAME_WIDTH, _width(name, rows)) + 7  # with the frame of two columns
    pages: list[list[str]] = [[]]
    room = width - used
    for column in columns:
        needed = _width(column, rows) + 3
        if needed > room and pages[-1]:
            pages.append([])
            room = width - used
        pages[-1].append(column)
        room -= needed
    return pages


def _table(title: str, names: Sequence[str], columns: Sequence[str], rows: Sequence[Mapping[str, str]], width: int):
    """A table whose second column, a name, gives way when the terminal is narrow; all others stay whole."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left")
    widths = {column: _width(column, rows) for column in (*names, *columns)}
    others = sum(widths.values()) - widths[names[1]] + 3 * len(widths) + 1
    widths[names[1]] = max(4, min(widths[names[1]], width - others))
    for column, wide in widths.items():
        table.add_column(column, justify="left" if column in _LEFT else "right", no_wrap=True, width=wide)
    for row in rows:
        table.add_row(*(Text(row[column]) for column in widths))  # a client chooses its name: no markup
    return table


def view(
    status: Mapping[str, Any], address: str, *, width: int, height: int | None = None, rates: Mapping[str, float] = {},
    page: int = 0, first: int = 0, hint: Callable[[str, int], str] | None = None,
):  # fmt: skip
    """Returns the status as a rich renderable.

    Args:
        status: of ``Admin.Status``, as JSON.
        address: the engine's.
        width: of the terminal, in columns.
        height: of the terminal, in lines; None shows all sessions.
        rates: instructions per second by session id.
        page: which set of columns, if the terminal is too narrow for all; counted modulo their number.
        first: index of the first session shown.
        hint: returns how to see what is hidden, from "columns" or "rows" and a count.
    """
    from rich.console import Group
    from rich.text import Text

    head = (
        f"engine {status['engine_version']} at {address}, pid {status['pid']}, up {duration(status['uptime_seconds'])}, "
        f"resident {size(status['resident_bytes'])}"
    )
    devices = [_device(d) for d in status["devices"]]
    every = [_session(s, rates.get(s["id"], 0)) for s in status["sessions"]]
    device_pages = _pages(_DEVICE_NAMES, _DEVICE_COLUMNS, devices, width)
    # The engine names the principals only to observers and operators.
    available = [c for c in _SESSION_COLUMNS if c != "principal" or any(row["principal"] for row in every)]
    session_pages = _pages(_SESSION_NAMES, available, every, width)
    page %= max(len(device_pages), len(session_pages))
    device_columns, session_columns = (p[min(page, len(p) - 1)] for p in (device_pages, session_pages))
    facts, sessions, notes = _libraries(status) + _principals(status) + _workers(status), every, []
    hidden = [c for c in _DEVICE_COLUMNS if c not in device_columns]
    hidden += [c for c in available if c not in session_columns and c not in hidden]
    if hidden:
        notes.append(f"not shown: {', '.join(hidden)}" + (f" ({hint('columns', len(hidden))})" if hint else ""))
    total = len(sessions)
    if height is not None:
        lines = sum(-(-len(line) // max(width, 1)) for line in (head, *facts, *notes))
        room = max(1, height - lines - (len(devices) + 5) - 5 - 1)  # the frames of two tables; a line about hidden rows
        first = max(0, min(first, total - room))
        sessions = sessions[first : first + room]
        if len(sessions) < total:
            shown = f"sessions {first + 1} to {first + len(sessions)} of {total}"
            notes.append(shown + (f" ({hint('rows', total - len(sessions))})" if hint else ""))
    return Group(
        Text(head), _table("devices", _DEVICE_NAMES, device_columns, devices, width), *(Text(line) for line in facts),
        _table(f"sessions ({total})", _SESSION_NAMES, session_columns, sessions, width),
        *(Text(note, style="dim") for note in notes),
    )  # fmt: skip
