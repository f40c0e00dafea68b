"""The tables of ``teletensor status`` and ``top``: as many columns and rows as the terminal has room for, and a line that
names what is not shown. Needs rich.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ._status_history import History
from ._status_rows import (
    DEVICES,
    PRINCIPALS,
    SESSIONS,
    TOP_SESSIONS,
    Column,
    Order,
    devices_of,
    duration,
    principals,
    size,
)  # fmt: skip

_NAMES = 2  # the first columns of a table, which are on every page
_NAME_WIDTH = 16  # the least width of a name before columns are left out for it


class Options(NamedTuple):
    """What a view shows."""

    width: int  # of the terminal, in columns
    height: int | None = None  # of the terminal, in lines; None shows all rows
    page: int = 0  # which set of columns, if the terminal is too narrow for all; counted modulo their number
    first: int = 0  # index of the first row shown
    order: Order | None = None  # None: the engine's order
    principals: bool = False  # a table of principals instead of one of sessions
    hint: Callable[[str, int], str] | None = None  # returns how to see what is hidden, from "columns" or "rows" and a count
    footer: str = ""  # the last line


class _Table(NamedTuple):
    title: str
    columns: list[Column]  # in the order of importance; the second one, a name, gives way when the terminal is narrow
    rows: list[dict[str, str]]
    order: Order | None = None

    def width(self, column: Column) -> int:
        return max(len(column.name), *(len(row[column.name]) for row in self.rows)) if self.rows else len(column.name)

    def pages(self, width: int) -> list[list[Column]]:
        """Divides the columns among as few pages as hold them. At least one column is on each page."""
        label, name = self.columns[:_NAMES]
        used = self.width(label) + min(_NAME_WIDTH, self.width(name)) + 7  # with the frame of two columns
        pages: list[list[Column]] = [[]]
        room = width - used
        for column in self.columns[_NAMES:]:
            needed = self.width(column) + 3
            if needed > room and pages[-1]:
                pages.append([])
                room = width - used
            pages[-1].append(column)
            room -= needed
        return pages

    def render(self, columns: Sequence[Column], rows: Sequence[Mapping[str, str]], width: int):
        """Returns rich's table of these columns after the names."""
        from rich.table import Table
        from rich.text import Text

        table = Table(title=self.title, title_justify="left")
        shown = [*self.columns[:_NAMES], *columns]
        widths = [self.width(column) for column in shown]
        widths[1] = max(4, min(widths[1], width - (sum(widths) - widths[1] + 3 * len(widths) + 1)))
        for column, wide in zip(shown, widths):
            is_sorted = self.order is not None and self.order.column == column.name
            table.add_column(
                column.name, justify="left" if column.is_text or column.is_history else "right", no_wrap=True, width=wide,
                header_style="bold reverse" if is_sorted else None,
            )  # fmt: skip
        for row in rows:  # a client chooses its name: no markup
            table.add_row(*(Text(row[c.name], style="cyan" if c.is_history else "") for c in shown))
        return table


def _texts(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column], history: History) -> list[dict[str, str]]:
    return [{column.name: column.text(row, history) for column in columns} for row in rows]


def _libraries(status: Mapping[str, Any]) -> list[str]:
    """Lines with the libraries that the devices have used so far, and the missing ones."""
    libraries = {library["name"]: library for device in devices_of(status) for library in device["libraries"]}
    found = [f"{name} {library['version']}" for name, library in libraries.items() if library["version"]]
    missing = [f"{name} is missing: {library['missing']}" for name, library in libraries.items() if library["missing"]]
    return ([f"libraries: {', '.join(found)}"] if found else []) + missing


def _limits(status: Mapping[str, Any]) -> list[str]:
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


def columns_of(status: Mapping[str, Any], history: History | None, *, principals: bool = False) -> list[Column]:
    """The columns of sessions or principals, the most important first: with a history its sparklines, else without."""
    columns = [*PRINCIPALS] if principals else [*SESSIONS]
    if history is None:
        return [column for column in columns if not column.is_history]
    if not principals:
        columns.sort(key=lambda column: TOP_SESSIONS.index(column.name))
    # The engine names the principals only to observers and operators.
    if any(session["principal"] for session in status["sessions"]):
        return columns
    return [column for column in columns if column.name != "principal"]


def _workers(status: Mapping[str, Any]) -> list[str]:
    """A line for each process that serves a principal, if the engine isolates them."""
    lines = []
    for each in status.get("workers", ()):
        state = f"{each['sessions']} sessions, resident {size(each['resident_bytes'])}" if each["answers"] else "does not answer"
        lines.append(f"worker of {each['principal']}: pid {each['pid']}, {state}")
    return lines


def _engines(status: Mapping[str, Any]) -> list[str]:
    """A line for each engine in which this one opens its sessions."""
    lines = []
    for each in status.get("engines", ()):
        if each["answers"]:
            used = f", {size(each['used_bytes'])} of {size(each['total_bytes'])} of {each['device']} used" if each["device"] else ""
            state = f"{each['sessions']} sessions, {each['working']} working{used}; {each['placed']} placed"
        else:
            state = f"not used: {each['failure']}"
        lines.append(f"engine at {each['address']}: {state}")
    return lines


def _main_table(status: Mapping[str, Any], history: History | None, options: Options) -> _Table:
    columns = columns_of(status, history, principals=options.principals)
    found = principals(status) if options.principals else status["sessions"]
    order = options.order if options.order and any(c.name == options.order.column for c in columns) else None
    known = history or History()
    if order:
        found = order.apply(found, columns, known)
    title = f"{'principals' if options.principals else 'sessions'} ({len(found)})"
    if order:
        title += f" by {order.column}" + (", reversed" if order.is_reversed else "")
    return _Table(title, columns, _texts(found, columns, known), order)


def publications(found: Sequence[Mapping[str, Any]]):
    """The list of published(), as a rich table."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title="published tensors", title_justify="left")
    for column in ("principal", "name", "bytes", "tensors", "sessions", "access", "ends", "to"):
        table.add_column(column, justify="right" if column in ("bytes", "tensors", "sessions") else "left")
    for each in found:
        to = "" if each["to"] is None else ", ".join(each["to"])
        row = (each["principal"], each["name"], size(each["bytes"]), str(each["tensors"]), str(each["sessions"]),
               "read only" if each["read_only"] else "read, write", "unpublish" if each["persist"] else "session", to)  # fmt: skip
        table.add_row(*(Text(cell) for cell in row))  # principals choose names: no markup
    return table


def view(status: Mapping[str, Any], address: str, options: Options, history: History | None = None):
    """Returns the status of an engine, a reply of ``Admin.Status`` as JSON, as a rich renderable.

    `address` is the engine's. With a `history`, to which the status has been added, there are rates and sparklines.
    """
    from rich.console import Group
    from rich.text import Text

    width, hint = options.width, options.hint
    head = (
        f"engine {status['engine_version']} at {address}, pid {status['pid']}, up {duration(status['uptime_seconds'])}, "
        f"resident {size(status['resident_bytes'])}"
    )
    if history:
        head += f", {history.rate('engine', '', 'instructions'):,.0f} instructions/s"
    device_columns = [column for column in DEVICES if history or not column.is_history]
    devices = _Table("devices", device_columns, _texts(devices_of(status), device_columns, history or History()))
    main = _main_table(status, history, options)
    device_pages, main_pages = devices.pages(width), main.pages(width)
    page = options.page % max(len(device_pages), len(main_pages))
    device_page, main_page = (p[min(page, len(p) - 1)] for p in (device_pages, main_pages))
    facts = _libraries(status) + _workers(status) + _engines(status) + ([] if history else _limits(status))
    notes, rows = [options.footer] if options.footer else [], main.rows
    hidden = [c.name for c in devices.columns[_NAMES:] if c not in device_page]
    hidden += [c.name for c in main.columns[_NAMES:] if c not in main_page and c.name not in hidden]
    if hidden:
        notes.insert(0, f"not shown: {', '.join(hidden)}" + (f" ({hint('columns', len(hidden))})" if hint else ""))
    total = len(rows)
    if options.height is not None:
        lines = sum(-(-len(line) // max(width, 1)) for line in (head, *facts, *notes))
        room = max(1, options.height - lines - (len(devices.rows) + 5) - 5 - 1)  # the frames of two tables; a line on hidden rows
        first = max(0, min(options.first, total - room))
        rows = rows[first : first + room]
        if len(rows) < total:
            shown = f"{'principals' if options.principals else 'sessions'} {first + 1} to {first + len(rows)} of {total}"
            notes.insert(len(notes) - bool(options.footer), shown + (f" ({hint('rows', total - len(rows))})" if hint else ""))
    return Group(
        Text(head), devices.render(device_page, devices.rows, width), *(Text(line) for line in facts),
        main.render(main_page, rows, width), *(Text(note, style="dim") for note in notes),
    )  # fmt: skip
