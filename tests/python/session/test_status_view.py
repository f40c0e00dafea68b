"""The tables of ``teletensor status`` and ``top`` fit the terminal and say what they hide."""

import pytest
from rich.console import Console

from teletensor import _status_view
from teletensor._status_history import History
from teletensor._status_rows import PRINCIPALS, SESSIONS, TOP_SESSIONS, Order, size
from teletensor._status_view import Options

COLUMNS = {column.name for column in SESSIONS if not column.is_history}
ALL_COLUMNS = {column.name for column in SESSIONS}

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


def lines(width: int, height: int | None = None, status: dict = STATUS, history: History | None = None, **options) -> list[str]:
    console = Console(width=width, force_terminal=False)
    shown = Options(width, height, hint=lambda what, n: what, **options)
    with console.capture() as capture:
        console.print(_status_view.view(status, "host:7070", shown, history))
    return capture.get().splitlines()


def columns(text: list[str]) -> set[str]:
    """The headers of the table of sessions or principals."""
    at = next(i for i, line in enumerate(text) if line.startswith(("sessions (", "principals (")))
    return {header.strip() for header in text[at + 2].strip("┃ ").split("┃")}


@pytest.mark.parametrize("width", [60, 80, 100, 125, 240])
def test_no_header_or_number_is_cut(width):
    text = lines(width)
    assert all(len(line) <= width for line in text)
    page = "\n".join(text)
    missing = COLUMNS - columns(text)
    assert columns(text) <= COLUMNS
    assert all(name in " ".join(page.partition("not shown: ")[2].split()) for name in missing)
    assert bool(missing) == (width < 200) and "client" in columns(text)
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
    found = [columns(lines(width, page=page)) for page in range(8)]
    assert found[0] != found[1] and set.union(*found) == COLUMNS


def test_names_of_clients_are_no_markup():
    status = STATUS | {"sessions": [session(0) | {"client": "x[/y] [red]z"}]}
    assert any("x[/y] [red]z" in line for line in lines(200, status=status))


# ---- `top`


def principal(name: str, **fields) -> dict:
    numbers = ("sessions", "held_bytes", "bookkeeping_bytes", "handles", "transfers", "memory_limit", "host_memory_limit",
               "gpu_memory_limit", "handle_limit", "transfer_limit", "checkpoint_limit")  # fmt: skip
    return {"name": name, "weight": 1, "priority": "interactive", "cpu_seconds": 0.0, **dict.fromkeys(numbers, "0"), **fields}


def at(second: int) -> dict:
    """A status in which session 0 holds more each second, session 1 executes 1,000 instructions per second, others nothing."""
    sessions = [session(i) | {"held_bytes": "0", "instructions": "5", "state": "idle", "queue_position": 0} for i in range(12)]
    sessions[0]["held_bytes"], sessions[1]["instructions"] = str((second - 600) << 20), str(1000 * second)
    sessions[2]["state"], sessions[2]["principal"] = "queued", "bob"
    principals = [principal("alice", cpu_seconds=1.5 * second), principal("bob", priority="batch", weight=3, memory_limit=str(8 << 30))]
    return STATUS | {"sessions": sessions, "principals": principals, "uptime_seconds": 500.0 + second}


@pytest.fixture
def minute() -> History:
    history = History()
    for second in range(600, 661):
        history.add(at(second), float(second))
    return history


def test_sparklines_show_the_last_minute(minute):
    assert minute.sparkline("session", "0", "held") == "▂▃▃▄▅▅▆▇██"
    assert minute.sparkline("session", "1", "instructions") == "█" * 10
    assert minute.sparkline("session", "3", "instructions") == minute.sparkline("session", "3", "held") == "▁" * 10
    assert minute.rate("session", "1", "instructions") == minute.rate("engine", "", "instructions") == 1000
    assert minute.rate("principal", "alice", "cpu") == 1.5
    new = History()
    assert new.sparkline("session", "1", "instructions") == " " * 10 and new.rate("session", "1", "instructions") == 0
    new.add(at(600), 600.0)
    new.add(at(606), 606.0)
    assert new.sparkline("session", "1", "instructions") == " " * 9 + "█"
    assert new.sparkline("session", "0", "held") == " " * 8 + "▁█"


def test_the_history_is_bounded_and_forgets(minute):
    for step in range(3_000):
        minute.add(at(661 + step // 150), 661 + step / 150)
    assert all(len(cells) <= History.CELLS for cells in minute._cells.values())
    minute.add(at(690) | {"sessions": [], "principals": []}, 690.0)
    assert {name[0] for name in [*minute._cells, *minute._rates]} == {"device", "engine"}
    minute.add(at(700) | {"pid": 2}, 700.0)  # another engine at the address
    assert minute._rates == {} and all(len(cells) == 1 for cells in minute._cells.values())


@pytest.mark.parametrize("shown", ["sessions", "principals"])
@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 30), (200, 50)])
def test_top_fits_the_terminal(minute, width, height, shown):
    every = [lines(width, height, at(660), minute, principals=shown == "principals", page=p, footer="q quit") for p in range(6)]
    for text in every:
        assert text[-1] == "q quit"
        assert len(text) <= height and all(len(line) <= width for line in text)
    expected = ALL_COLUMNS if shown == "sessions" else {column.name for column in PRINCIPALS}
    assert set.union(*(columns(text) for text in every)) == expected
    if shown == "sessions":
        assert {"held", "held 1m", "per s", "per s 1m"} <= columns(every[0])
        assert "instructions/s" in " ".join(every[0])
    else:
        assert {"class", "weight", "CPU", "queue", "held", "limit"} <= columns(every[0])


def ids(text: list[str]) -> list[int]:
    return [int(line.strip("│ ").split()[0]) for line in text if "python train" in line]


def test_sessions_are_sorted_by_every_column(minute):
    assert {*TOP_SESSIONS} == ALL_COLUMNS
    status = at(660)
    for name in ALL_COLUMNS:
        text = lines(200, status=status, history=minute, order=Order(name))
        assert f"sessions (12) by {name}" in "\n".join(text)
        backwards = lines(200, status=status, history=minute, order=Order(name, True))
        assert sorted(ids(text)) == sorted(ids(backwards)) == list(range(12))
    shown = {name: ids(lines(200, status=status, history=minute, order=Order(name))) for name in ALL_COLUMNS}
    assert shown["held"][0] == shown["held 1m"][0] == 0 and shown["per s"][0] == shown["per s 1m"][0] == 1
    assert shown["principal"][-1] == 2 and shown["state"][-1] == 2 and shown["id"] == list(range(12))
    assert ids(lines(200, status=status, history=minute, order=Order("id", True))) == list(range(11, -1, -1))
    assert ids(lines(80, 24, status, minute, order=Order("held")))[0] == 0
    for column in PRINCIPALS:
        text = lines(200, status=status, history=minute, order=Order(column.name), principals=True)
        assert sum("interactive" in line or "batch" in line for line in text) == 2


def test_principals_show_class_weight_and_queue(minute):
    text = lines(200, status=at(660), history=minute, principals=True)
    (bob,) = (line for line in text if " bob " in line)
    cells = [cell.strip() for cell in bob.strip("│").split("│")]
    assert cells[:8] == ["0", "bob", "batch", "3", "0.0 s", "1", "0 B", "8.0 GiB"]
    assert any("990 s" in line and "1.50" in line for line in text)
    without = {name: value for name, value in at(660).items() if name != "principals"}  # as an older engine answers
    assert "principals (0)" in "\n".join(lines(80, 24, without, minute, principals=True))


def test_sizes():
    assert [size(n) for n in (0, 1023, 1024, 1 << 40)] == ["0 B", "1023 B", "1.0 KiB", "1024.0 GiB"]


def test_workers_are_listed():
    workers = [
        {"principal": "alice", "pid": "7", "resident_bytes": str(3 << 20), "sessions": "2", "answers": True},
        {"principal": "bob", "pid": "8", "resident_bytes": "0", "sessions": "0", "answers": False},
    ]
    text = lines(120, status=STATUS | {"workers": workers})
    assert "worker of alice: pid 7, 2 sessions, resident 3.0 MiB" in text
    assert "worker of bob: pid 8, does not answer" in text
