"""torch.utils.bottleneck: a report on what takes a script's time.

    python -m teletensor.utils.bottleneck script.py [arguments]

Runs the script twice: once with Python's profiler, once with the engine's. The report has the environment, the functions
of the script that took the most time, the engine's operators, the time of frames between client and engine, the lines
that waited for the engine, and a conclusion.
"""

from __future__ import annotations

import argparse
import contextlib
import cProfile
import io
import pstats
import runpy
import sys
import time
from collections.abc import Sequence

from .. import _connection

_ROWS = 15


@contextlib.contextmanager
def _arguments(script: str, arguments: Sequence[str]):
    """sys.argv and the folder of imports as the script expects them."""
    from pathlib import Path

    argv, path = sys.argv, list(sys.path)
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(Path(script).resolve().parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, path


def _run(script: str, arguments: Sequence[str]) -> float:
    """Runs the script as __main__, waits for the engine, and returns the seconds."""
    start = time.perf_counter()
    with _arguments(script, arguments):
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as end:
            if end.code not in (None, 0):
                raise
    _connection.synchronize()
    return time.perf_counter() - start


def _title(text: str) -> str:
    return f"\n{'-' * 80}\n{text}\n{'-' * 80}"


def _environment() -> str:
    from .. import __version__

    engine = _connection.connection().engine()
    devices = ", ".join(f"{device['device']} ({device['name']})" for device in engine["devices"])
    python = ".".join(map(str, sys.version_info[:3]))
    return f"teletensor {__version__}, engine {engine['version']}, Python {python}\n{devices}"


def _python_part(script: str, arguments: Sequence[str]) -> str:
    recorded = cProfile.Profile()
    recorded.runcall(_run, script, arguments)
    text = io.StringIO()
    pstats.Stats(recorded, stream=text).strip_dirs().sort_stats("tottime").print_stats(_ROWS)
    return text.getvalue().strip()


def _waited(before: Sequence, after: Sequence) -> list[tuple[str, str, int, float]]:
    """The waits since an earlier report, the longest first."""
    known = {(where, kind): (count, seconds) for where, kind, count, seconds in before}
    rows = []
    for where, kind, count, seconds in after:
        count_before, seconds_before = known.get((where, kind), (0, 0.0))
        if count > count_before:
            rows.append((where, kind, count - count_before, seconds - seconds_before))
    return sorted(rows, key=lambda row: -row[3])


def _conclusion(wall: float, busy: float, waits: Sequence[tuple[str, str, int, float]]) -> str:
    waited = sum(seconds for _, kind, _, seconds in waits if kind != "window")
    blocked = sum(seconds for _, kind, _, seconds in waits if kind == "window")
    lines = [
        f"wall time {wall:.3f} s; the engine executed for {busy:.3f} s ({100 * busy / wall:.0f} %); the script waited for values "
        f"and uploads {waited:.3f} s, and because the engine was behind {blocked:.3f} s"
    ]
    if busy > 0.7 * wall:
        lines.append("The engine's operators take most of the time: see their table.")
    elif waited > 0.3 * wall:
        lines.append(
            "The script waits for values while the engine has little to do: read them later (Tensor.numpy_async()) or less "
            "often; the lines are listed above."
        )
    else:
        lines.append("The script's own code takes most of the time: see the table of Python's functions.")
    return "\n".join(lines)


def _engine_part(script: str, arguments: Sequence[str]) -> str:
    from ..profiler import profile

    connection = _connection.connection()
    with profile(with_stack=True) as recorded:
        before = connection.wait_report()
        wall = _run(script, arguments)
        after = connection.wait_report()
    waits = _waited(before, after)
    operators = [event for event in recorded.events() if event.cpu_parent is None and not event.is_user_annotation]
    busy = sum(event.cpu_time_total for event in operators) / 1e6
    lines = [f"{count:8d} x  {seconds:9.3f} s  {kind:6s}  {where or '(unknown)'}" for where, kind, count, seconds in waits[:_ROWS]]
    return "\n".join([
        _title("engine's operators"), recorded.key_averages().table(sort_by="self_cpu_time_total", row_limit=_ROWS),
        _title("lines with the most time in the engine"),
        recorded.key_averages(group_by_stack_n=1).table(sort_by="self_cpu_time_total", row_limit=_ROWS),
        _title("frames between client and engine"), recorded.link_table(),
        _title("lines that waited for the engine"), *(lines or ["no line waited"]),
        _title("conclusion"), _conclusion(wall, busy, waits),
    ])  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the report on a script, and returns the exit status.

    Args:
        argv: the script and its arguments; by default those of the command line.
    """
    parser = argparse.ArgumentParser(prog="python -m teletensor.utils.bottleneck", description="Reports what takes a script's time.")
    parser.add_argument("script", help="the script; it runs twice, so it should end soon")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the script's arguments")
    args = parser.parse_args(argv)
    print(_title("environment") + "\n" + _environment())
    print(_title("functions of Python, by their own time") + "\n" + _python_part(args.script, args.arguments))
    print(_engine_part(args.script, args.arguments))
    return 0


if __name__ == "__main__":
    sys.exit(main())
