"""The tables of ``teletensor status`` and ``top`` fit the terminal and say what they hide."""

import pytest
from rich.console import Console

from teletensor import _status_view

DEVICE = {
    "device": {
        "device": "0", "name": "a processor with a rather long name @ 3.00GHz", "total_memory": str(24 << 30),
        "compute_capability": "", "driver": "",
    },
    "libraries": [{"name": "oneDNN", "version": "2.6", "missing": ""}],
    "memory": {k: str(1 << 30) for k in ("allocated", "active", "reserved", "peak_allocated", "limit")} | {"out_of_memory": "3"},
}  # fmt: skip


def session(number: int) -> dict:
    return {
        "id": str(number), "client": f"python train.py with a long name {number}", "age_seconds": 90.0, "connected": True,
        "principal": "alice",
        "handles": "1234567", "held_bytes": str(1000 << 20), "peak_bytes": str(1 << 30), "limit_bytes": str(64 << 30),
        "instructions": "123456789", "replayed": "1000", "failed": "12", "state": "queued", "queue_position": 12,
        "waited_seconds": 3.0,
    }  # fmt: skip


STATUS = {
    "engine_version": "1.0", "pid": 1, "uptime_seconds": 9999.0, "resident_bytes": str(1 << 30), "devices": [DEVICE],
    "sessions": [session(i) for i in range(12)],
}  # fmt: skip


def lines(width: int, height: int | None = None, **options) -> list[str]:
    console = Console(width=width, force_terminal=False)
    with console.capture() as capture:
        console.print(_status_view.view(STATUS, "host:7070", width=width, height=height, hint=lambda what, n: what, **options))
    return capture.get().splitlines()


def columns(text: list[str]) -> set[str]:
    """The headers of the table of sessions."""
    at = next(i for i, line in enumerate(text) if line.startswith("sessions ("))
    return {header.strip() for header in text[at + 2].strip("┃ ").split("┃")}


@pytest.mark.parametrize("width", [60, 80, 100, 125, 200])
def test_no_header_or_number_is_cut(width):
    text = lines(width)
    assert all(len(line) <= width for line in text)
    page = "\n".join(text)
    missing = {*_status_view._SESSION_COLUMNS} - columns(text)
    assert columns(text) <= {"id", "client", *_status_view._SESSION_COLUMNS}
    assert all(name in " ".join(page.partition("not shown: ")[2].split()) for name in missing)
    assert bool(missing) == (width < 160) and "client" in columns(text)
    assert "1000.0 MiB" in page and "64.0 GiB" in page and page.count("up ") >= 12
    assert sum("a process" in line for line in text) == 1  # a name has one line


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize("height", [24, 40])
def test_rows_fit_the_terminal(width, height):
    text = lines(width, height)
    assert len(text) <= height
    rows = [line for line in text if "python" in line]
    if len(rows) < 12:
        assert f"sessions 1 to {len(rows)} of 12 (rows)" in text[-1]
    last = lines(width, height, first=100)
    assert any(line.strip("│ ").startswith("11 ") for line in last)


@pytest.mark.parametrize("width", [60, 80, 125])
def test_pages_have_all_columns(width):
    found = [columns(lines(width, page=page)) for page in range(6)]
    assert found[0] != found[1] and set.union(*found) == {"id", "client", *_status_view._SESSION_COLUMNS}


def test_names_of_clients_are_no_markup():
    status = STATUS | {"sessions": [session(0) | {"client": "x[/y] [red]z"}]}
    console = Console(width=200, force_terminal=False)
    with console.capture() as capture:
        console.print(_status_view.view(status, "host:7070", width=200))
    assert "x[/y] [red]z" in capture.get()


def test_workers_are_listed():
    workers = [
        {"principal": "alice", "pid": "7", "resident_bytes": str(3 << 20), "sessions": "2", "answers": True},
        {"principal": "bob", "pid": "8", "resident_bytes": "0", "sessions": "0", "answers": False},
    ]
    console = Console(width=120, force_terminal=False)
    with console.capture() as capture:
        console.print(_status_view.view({**STATUS, "workers": workers}, "host:7070", width=120))
    text = capture.get().splitlines()
    assert "worker of alice: pid 7, 2 sessions, resident 3.0 MiB" in text
    assert "worker of bob: pid 8, does not answer" in text
