"""Workers that are lost, send invalid messages or stop: the others receive errors that name them, and continue."""

from __future__ import annotations

import os
import random
import signal
import time

import pytest

from ..ranks import Ranks, free_port
from . import rpc_failure_cases as cases

pytestmark = pytest.mark.slow

OK = ["", ""]


def on_all(group: Ranks, ranks, function, *arguments, **options) -> list:
    for rank in ranks:
        group.all[rank].start(function, *arguments, **options)
    return [group.all[rank].result() for rank in ranks]


def begin(group: Ranks, size: int, port: int = 0, **options) -> list:
    port = port or free_port()
    for rank in range(size):
        group.all[rank].start(cases.begin, rank, size, port, **options)
    return [group.all[rank].result() for rank in range(size)]


@pytest.mark.parametrize("what", ["engine", "process"])
@pytest.mark.parametrize("victim", [0, 2])
def test_a_worker_dies_during_a_call(own_ranks, victim, what):
    """Worker 0's engine also serves the store at which the workers met."""
    group = own_ranks(3)
    pids = on_all(group, range(3), cases.engine_pid)
    assert begin(group, 3) == [OK] * 3
    others = [rank for rank in range(3) if rank != victim]
    group.all[others[0]].start(cases.call_never, victim)
    group.all[others[1]].start(cases.fetch, victim)
    os.kill(pids[victim] if what == "engine" else group.all[victim].process.pid, signal.SIGKILL)
    for rank in others:
        kind, message = group.all[rank].result()
        assert kind == "DistError" and f"WorkerInfo(id={victim}, name=worker{victim}) was lost" in message, message
        assert cases.call_echo.__name__ and on_all(group, [rank], cases.call_echo, victim)[0][0] == "DistError"
    for rank, peer in (others, others[::-1]):
        assert on_all(group, [rank], cases.call_echo, peer) == [OK]
    assert on_all(group, others, cases.end) == [OK] * 2


@pytest.mark.parametrize("seed", range(3))
def test_a_worker_dies_at_a_random_moment(own_ranks, seed):
    choose, group = random.Random(seed), own_ranks(3)
    pids = on_all(group, range(3), cases.engine_pid)
    assert begin(group, 3) == [OK] * 3
    for rank in range(3):
        group.all[rank].start(cases.traffic, rank, 3, seed)
    time.sleep(choose.random())
    victim, what = choose.randrange(3), choose.choice(["engine", "process"])
    os.kill(pids[victim] if what == "engine" else group.all[victim].process.pid, signal.SIGKILL)
    others = [rank for rank in range(3) if rank != victim]
    for rank in others:
        kind, message = group.all[rank].result()
        assert kind in ("DistError", "RuntimeError") and "lost" in message, message
    for rank, peer in (others, others[::-1]):
        assert on_all(group, [rank], cases.call_echo, peer) == [OK]
    assert on_all(group, others, cases.end) == [OK] * 2


def test_malformed_messages_end_the_connection_to_their_sender(own_ranks):
    group = own_ranks(3)
    for kind in range(11):
        assert begin(group, 3) == [OK] * 3
        on_all(group, [1], cases.send_malformed, 0, kind)
        (reason,) = on_all(group, [0], cases.is_lost, 1)
        assert "malformed" in reason, (kind, reason)
        assert on_all(group, [0], cases.call_echo, 1)[0][0] == "DistError"
        assert on_all(group, [0, 2], cases.call_echo, 2) == [OK] * 2
        assert on_all(group, range(3), cases.end, False) == [OK] * 3


def test_damaged_messages_are_refused_or_harmless(own_ranks):
    group = own_ranks(2)
    assert begin(group, 2) == [OK] * 2
    assert on_all(group, [0], cases.damaged_messages, 1)[0] > 500
    assert on_all(group, [0, 1], cases.call_echo, 0) == [OK] * 2
    assert on_all(group, range(2), cases.end, False) == [OK] * 2


def test_shutdown(own_ranks):
    group = own_ranks(2)
    assert on_all(group, [0], cases.end)[0][1].startswith("RPC has not been initialized")
    for graceful in (True, False, True):  # a process may become a worker again
        assert begin(group, 2) == [OK] * 2
        assert on_all(group, [0], cases.begin, 0, 2, 1)[0][1].startswith("RPC is already initialized")
        assert on_all(group, range(2), cases.call_echo, 1) == [OK] * 2
        assert on_all(group, range(2), cases.end, graceful) == [OK] * 2
        assert on_all(group, range(2), cases.end)[1][1].startswith("RPC has not been initialized"), "a second time"
        assert on_all(group, [0], cases.call_echo, 1)[0][0] == "RuntimeError"


def test_shutdown_waits_for_all_workers(own_ranks):
    group = own_ranks(2)
    assert begin(group, 2) == [OK] * 2
    kind, message = on_all(group, [0], cases.end, True, 1.5)[0]
    assert kind == "RuntimeError" and "timed out" in message
    kind, message = on_all(group, [1], cases.call_echo, 0)[0]
    assert kind == "DistError" and "worker0) was lost" in message and "it has shut down" in message
    assert on_all(group, [1], cases.end) == [OK]


def test_workers_that_cannot_meet(own_ranks):
    group, port = own_ranks(2), free_port()
    kind, message = on_all(group, [0], cases.begin, 0, 2, port, timeout=1.0)[0]
    assert kind == "DistStoreError" and "expected 2 workers, missing: rank 1" in message
    for found in begin(group, 2, name="same"):
        assert found[0] == "DistStoreError" and "one worker per name" in found[1]
    assert on_all(group, [0], cases.begin, 0, 2, port, name="no spaces")[0][0] == "ValueError"
    assert begin(group, 2) == [OK] * 2
    assert on_all(group, range(2), cases.end) == [OK] * 2
