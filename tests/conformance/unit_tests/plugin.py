"""A pytest plugin that presents a package as `torch`, limits the time of each test and records its outcome.

The record has one line of JSON per test that starts, {"start": name}, and one when it ends, {"test", "state", "message"}; if
the file cannot be imported, a line {"broken": message}. A test that is in the record is not run again, so that a run
continues after a test that ended the process.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from . import former_names, presentation


def pytest_addoption(parser: Any) -> None:
    """Adds this plugin's options."""
    parser.addoption("--package", choices=["teletensor", "torch"], help="the package that tests import as torch")
    parser.addoption("--record", type=Path, help="the file to which lines are added")
    parser.addoption("--limit", type=float, help="seconds per test")
    parser.addoption("--every", type=int, help="run one of so many tests")


def pytest_configure(config: Any) -> None:
    """Presents the package, and starts the record."""
    sys.argv = sys.argv[:1]  # PyTorch's tests read it
    with contextlib.suppress(ImportError):
        hypothesis = importlib.import_module("hypothesis")
        hypothesis.settings.register_profile("unlimited", deadline=None)  # the profiles of PyTorch's tests inherit it
        hypothesis.settings.load_profile("unlimited")
    if config.option.package == "teletensor":
        presentation.install()
    config.pluginmanager.register(_Recorder(config.option.record, config.option.limit, config.option.every))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: Any) -> Iterator[Any]:
    """Makes the imports of names that the package lacks succeed."""
    if not isinstance(collector, pytest.Module):
        return (yield)
    source = collector.path.read_text()
    former_names.provide(source)
    with presentation.lenient(source):
        return (yield)


def _name(nodeid: str) -> str:
    return nodeid.partition("::")[2]


class _Recorder:
    """Writes the record."""

    def __init__(self, path: Path, limit: float, every: int):
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        self._done = {line["start"] for line in lines if "start" in line}
        self._file = path.open("a")
        self._limit = limit
        self._every = every
        self._state: tuple[str, str] = "passed", ""

    def _write(self, **line: str) -> None:
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()

    def pytest_collection_modifyitems(self, items: list) -> None:
        names = {item: _name(item.nodeid) for item in items}
        items[:] = [item for item in items if names[item] not in self._done and crc32(names[item].encode()) % self._every == 0]

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._write(broken=_message(report))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        self._write(start=_name(item.nodeid))
        self._state = "passed", ""

        def stop(*_: Any) -> None:
            pytest.fail(f"took longer than {self._limit:g} s")

        signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, self._limit)
        faulthandler.dump_traceback_later(2 * self._limit, exit=True)  # if it waits outside of Python
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            faulthandler.cancel_dump_traceback_later()
            self._write(test=_name(item.nodeid), state=self._state[0], message=self._state[1])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Iterator[Any]:
        report = yield
        report.statement = ""
        if call.excinfo:
            lines = [str(entry.statement).strip() for entry in call.excinfo.traceback if entry.path == item.path]
            report.statement = lines[-1] if lines else ""
        return report

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and self._state[0] != "failed":
            self._state = "failed", _message(report)
        elif report.skipped and not hasattr(report, "wasxfail") and self._state[0] == "passed":
            self._state = "skipped", str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)


def _message(report: Any) -> str:
    """The exception's text on one line, and the last statement of the test's file in the traceback."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash else "\n".join(str(report.longrepr).splitlines()[-5:])
    at = getattr(report, "statement", "")
    return " ".join(text.split())[:600] + (f" at {' '.join(at.split())[:150]}" if at else "")
