"""An engine with the device library of examples/device, and sessions with it in place of the tests' session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.conftest import BUILD, IN_PROCESS, Daemon

EXAMPLE = BUILD / "tests/libexample_device.so"
FAULTY = BUILD / "tests/libfaulty_device.so"

collect_ignore_glob = ["test_*.py"] if IN_PROCESS else []  # device libraries are a daemon's


@contextmanager
def session(address: str, memory_limit: int = 0) -> Iterator[None]:
    """Makes a new session with another engine the current one for a block."""
    from teletensor import _C, _connection

    before = _connection._current
    trust = {"fingerprint": "", "ca": "", "certificate": "", "key": ""}
    opened = _connection._open(address, "", memory_limit, None, False, trust)
    _connection._current = opened
    _C.set_session(opened)
    try:
        yield
    finally:
        _connection._current = before
        _C.set_session(before)
        opened.close()


@pytest.fixture(scope="module")
def engine(tmp_path_factory) -> Iterator[Daemon]:
    """The engine with two example devices of 256 MiB."""
    daemon = Daemon(tmp_path_factory.mktemp("devices"), "--devices", str(EXAMPLE))
    yield daemon
    assert daemon.stop() == 0


@pytest.fixture
def torch(_engine, engine):
    """The package, in a session with that engine."""
    with session(engine.address):
        _engine.manual_seed(0)
        yield _engine
