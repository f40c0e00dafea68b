"""``teletensor top``: the status of an engine, updated until q or Ctrl-C. Needs rich."""

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
import time
from collections.abc import Callable, Iterator

from . import _status_view

_UP, _DOWN = ("k", "\x1b[A"), ("j", "\x1b[B")


@contextlib.contextmanager
def _keys() -> Iterator[Callable[[float], str]]:
    """A function that waits at most a time for a key and returns it, or ""; without a terminal it only waits."""
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        yield lambda seconds: time.sleep(seconds) or ""
        return
    import termios
    import tty

    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)

    def wait(seconds: float) -> str:
        ready, _, _ = select.select([fd], [], [], seconds)
        return os.read(fd, 16).decode(errors="replace") if ready else ""

    try:
        tty.setcbreak(fd)
        yield wait
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


def _hint(what: str, _count: int) -> str:
    return "press c, or widen the terminal" if what == "columns" else "press j and k"


def run(admin, interval: float, count: int | None) -> None:
    """Shows the engine's status every `interval` seconds, `count` times or until q."""
    from rich.console import Console
    from rich.live import Live

    console = Console()
    interactive = console.is_terminal
    before: dict[str, int] = {}
    rates: dict[str, float] = {}
    at, rounds, page, first = time.monotonic(), 0, 0, 0
    with _keys() as wait, Live(console=console, auto_refresh=False, screen=interactive) as live:
        while count is None or rounds < count:
            status = json.loads(admin.status())
            now = time.monotonic()
            counts = {s["id"]: int(s["instructions"]) for s in status["sessions"]}
            if before:
                rates = {k: (n - before.get(k, n)) / max(now - at, 1e-6) for k, n in counts.items()}
            before, at = counts, now
            rounds += 1
            end = now + interval
            while True:
                width, height = console.size
                live.update(
                    _status_view.view(
                        status, admin.address, width=width, height=height if interactive else None, rates=rates,
                        page=page, first=first, hint=_hint if interactive else None,
                    ),
                    refresh=True,
                )  # fmt: skip
                if rounds == count or not (key := wait(max(0.0, end - time.monotonic()))):
                    break
                if key == "q":
                    return
                page += key == "c"
                first = max(0, min(first + (key in _DOWN) - (key in _UP), len(status["sessions"]) - 1))
