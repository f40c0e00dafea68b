"""session_info(): what a session waits for, what its principal uses, and engines of all kinds."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import IN_PROCESS, client_environment, eventually
from tests.python.session.test_isolation import Client, principals, start  # noqa: F401 - fixtures
from tests.python.session.test_placement import cluster, two  # noqa: F401 - a fixture
from tests.python.session.test_principals import engine, user  # noqa: F401 - a fixture
from tests.python.session.test_quotas import clients  # noqa: F401 - a fixture
from tests.python.session.test_shares import START
from tests.python.session.test_tls import fingerprint_of
from tests.python.session.test_tls import start as start_tls  # noqa: F401 - a fixture

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]


def test_a_waiting_session_knows_its_place_and_why(engine, clients):  # noqa: F811
    night = user(engine.file, "add", "night", "--priority", "batch", "--weight", "3")
    engine.options = ("--threads", "1")  # one turn
    engine.start()
    sessions = [clients(engine, night) for _ in range(3)]
    assert all(each("torch.ones(3).sum().item()") == 3 for each in sessions)
    assert sessions[0]("torch.session_info()['waits_for']") is None
    for each in sessions:
        each(START)
    seen = []

    def some_wait() -> bool:
        seen.extend(each("torch.session_info()") for each in sessions)
        return any(each["state"] == "queued" and each["queue_position"] == 2 for each in seen)

    eventually(some_wait)
    for each in seen:
        assert (each["queue_position"] > 0) == (each["state"] == "queued") == (each["waits_for"] is not None)
        assert each["principal"] == "night" and each["usage"]["priority"] == "batch" and each["usage"]["weight"] == 3
    second = next(each for each in seen if each["queue_position"] == 2)
    assert second["waits_for"] == (
        "a turn of the processors: all are in use, and one session precedes this one; interactive principals precede those of "
        "the class batch"
    )
    assert all(each("z.sum().item()") == 300 * 512.0**3 for each in sessions)
    eventually(lambda: all(each("torch.session_info()['state']") == "idle" for each in sessions))
    assert max(each("torch.session_info()['waited_seconds']") for each in sessions) > 0


def test_usage_and_limits_are_those_of_the_principal(engine, clients):  # noqa: F811
    alice = user(engine.file, "add", "alice", "--memory", "64MB", "--handles", "5000")
    bob = user(engine.file, "add", "bob")
    engine.start()
    first, second, other = clients(engine, alice), clients(engine, alice), clients(engine, bob)
    assert first("x = torch.ones(1 << 20); x[0].item()") is None and second("y = torch.ones(1 << 18); y[0].item()") is None
    other("z = torch.ones(1 << 22); z[0].item()")
    one, two = first("torch.session_info()"), second("torch.session_info()")
    assert one["session"] != two["session"] and one["usage"]["limits"] == {"memory_limit": 64 << 20, "handle_limit": 5000}
    assert 4 << 20 <= one["held_bytes"] < 5 << 20 and 1 << 20 <= two["held_bytes"] < 2 << 20
    assert one["usage"]["held_bytes"] == two["usage"]["held_bytes"] >= 5 << 20
    assert one["usage"]["sessions"] == 2 and one["instructions"] > 0 and one["handles"] >= 1
    assert other("torch.session_info()")["usage"]["limits"] == {}


SCRIPT = """
import sys, teletensor as torch
{connect}
print(torch.ones(3).sum().item())
info = torch.session_info()
print(info["session"] == torch.connection().engine()["session"], info["connected"], info["instructions"] > 0, info["waits_for"])
"""


def answer(connect: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(connect=connect)], capture_output=True, text=True, timeout=120,
        env=client_environment(TELETENSOR_KNOWN_ENGINES="/dev/null", **environment),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_private_engines_and_tls(start_tls):  # noqa: F811
    expected = "3.0\nTrue True True None\n"
    assert answer("") == expected
    secured = start_tls("--tls-self-signed")
    assert answer(f"torch.connect({secured.url!r}, fingerprint={fingerprint_of(secured)!r})") == expected


def test_sessions_in_workers(start, principals):  # noqa: F811
    isolated = start()
    client = Client(address=isolated.address, token=isolated.tokens["alice"])
    try:
        assert client.greeting == "up" and client("torch.ones(3).sum().item()") == "3.0"
        told = client("[torch.session_info()[n] for n in ('principal', 'state', 'connected')]")
        assert told == "['alice', 'idle', True]"
    finally:
        client.stop()


def test_sessions_in_other_engines_are_an_error(cluster):  # noqa: F811
    engine, front, client = cluster  # noqa: F811
    placed = client(front(*two(engine)))
    assert placed("torch.ones(3).sum().item()") == "3.0"
    assert "placed in another engine" in placed("torch.session_info()")
