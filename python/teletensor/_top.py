"""``teletensor top``: the status of an engine, updated until q or Ctrl-C. Needs rich."""

from __future__ import annotations

import contextlib
import os
import re
import select
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import _printable, _status_view
from ._status_history import History
from ._status_rows import PRINCIPALS, SESSIONS, Order

KEYS = "q: quit; c: columns; j, k: rows; s, S: sort by the next or previous column; r: reverse; p: principals or sessions"
_FOOTER = "q quit   c columns   j k rows   s S sort   r reverse   p principals"
_UP, _DOWN = ("k", "\x1b[A"), ("j", "\x1b[B")
_KEY = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|.", re.DOTALL)


@contextlib.contextmanager
def _keys() -> Iterator[Callable[[float], list[str]]]:
    """A function that waits at most a time for keys and returns them; without a terminal it only waits."""
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        yield lambda seconds: time.sleep(seconds) or []
        return
    import termios
    import tty

    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)

    def wait(seconds: float) -> list[str]:
        ready, _, _ = select.select([fd], [], [], seconds)
        return _KEY.findall(os.read(fd, 64).decode(errors="replace")) if ready else []

    try:
        tty.setcbreak(fd)
        yield wait
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


def _hint(what: str, _count: int) -> str:
    return "c" if what == "columns" else "j, k"


def sort_order(column: str, *, principals: bool) -> Order:
    """The order that ``--sort`` names. Raises ValueError if there is no such column."""
    names = [each.name for each in (PRINCIPALS if principals else SESSIONS)]
    name = column.replace("-", " ")
    if name not in names:
        raise ValueError(f"[top] expected --sort to be one of {', '.join(names)}, got {column}")
    return Order(name)


@dataclass
class _State:
    """What the keys have selected."""

    order: Order | None = None
    principals: bool = False
    page: int = 0
    first: int = 0
    others: dict[bool, Order | None] = field(default_factory=dict)  # the order of the other table, by `principals`

    def press(self, key: str, status: Mapping[str, Any], history: History) -> bool:
        """Applies a key. Returns whether it ends the program."""
        rows = len(status.get("principals", ()) if self.principals else status["sessions"])
        if key in ("s", "S"):
            names = [column.name for column in _status_view.columns_of(status, history, principals=self.principals)]
            at = names.index(self.order.column) if self.order and self.order.column in names else -1 if key == "s" else len(names)
            self.order, self.first = Order(names[(at + (1 if key == "s" else -1)) % len(names)]), 0
        elif key == "r":
            before = self.order or Order("name" if self.principals else "id")
            self.order = before._replace(is_reversed=not before.is_reversed)
        elif key == "p":
            self.others[self.principals] = self.order
            self.principals = not self.principals
            self.order, self.page, self.first = self.others.get(self.principals), 0, 0
        self.page += key == "c"
        self.first = max(0, min(self.first + (key in _DOWN) - (key in _UP), rows - 1))
        return key == "q"


def run(admin, interval: float, count: int | None, order: Order | None = None, *, principals: bool = False) -> None:
    """Shows the engine's status every `interval` seconds, `count` times or until q."""
    from rich.console import Console
    from rich.live import Live

    console = Console()
    interactive = console.is_terminal
    history, state, rounds = History(), _State(order, principals), 0
    with _keys() as wait, Live(console=console, auto_refresh=False, screen=interactive) as live:
        while count is None or rounds < count:
            status = _printable.loads(admin.status())
            now = time.monotonic()
            history.add(status, now)
            rounds += 1
            end = now + interval
            while True:
                width, height = console.size
                options = _status_view.Options(
                    width, height if interactive else None, state.page, state.first, state.order, state.principals,
                    _hint if interactive else None, _FOOTER if interactive else "",
                )  # fmt: skip
                live.update(_status_view.view(status, admin.address, options, history), refresh=True)
                if rounds == count or not (pressed := wait(max(0.0, end - time.monotonic()))):
                    break
                if any([state.press(key, status, history) for key in pressed]):
                    return
