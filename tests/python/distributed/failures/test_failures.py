"""Ranks that die or fall silent: every other rank receives an error that names them, and continues."""

from __future__ import annotations

import os
import re
import signal
import time

import pytest

from ..ranks import Ranks, free_port
from . import failure_cases as cases

pytestmark = pytest.mark.slow

LARGE = 1 << 20  # items of a collective that takes milliseconds


def on_all(group: Ranks, ranks, function, *arguments) -> dict[int, object]:
    """Runs a function on some ranks at the same time; returns the results by rank."""
    for rank in ranks:
        group.all[rank].start(function, *arguments)
    return {rank: group.all[rank].result() for rank in ranks}


def form(group: Ranks, size: int, backend: str, timeout: float = 30) -> list[int]:
    """Forms the default group; returns the engines' process ids."""
    pids = on_all(group, range(size), cases.engine_pid)
    port = free_port()
    for rank in range(size):
        group.all[rank].start(cases.form, rank, size, port, backend, timeout)
    assert [group.all[rank].result()[0] for rank in range(size)] == [""] * size
    return [pids[rank] for rank in range(size)]


def check_survivors(group: Ranks, results: dict[int, list], victim: int, collective: str = "all_reduce") -> None:
    """Checks the errors, and that the ranks compute and form a group."""
    for rank, (message, _, kept) in results.items():
        # A rank may also wait for others that the victim holds up: "waiting for rank 1, 2".
        for part in (rf"rank (\d+, )*{victim}\b", collective, "failure_cases.py"):
            assert re.search(part, message), f"rank {rank}: expected {part!r} in {message!r}"
        assert kept == [0, 2, 4, 6, 8]
    form_again(group, list(results), victim)


def form_again(group: Ranks, members: list[int], victim: int) -> None:
    port = free_port() if victim == 0 else 0  # rank 0's engine serves the store
    for rank in members:
        group.all[rank].start(cases.form_again, rank, len(group.all), port, members)
    for rank in members:
        assert group.all[rank].result() == [sum(members)] * 3


def kill(group: Ranks, victim: int, what: str, pids: list[int]) -> None:
    os.kill(pids[victim] if what == "engine" else group.all[victim].process.pid, signal.SIGKILL)


@pytest.mark.parametrize("backend", ["shm", "gloo"])
@pytest.mark.parametrize(
    ("size", "victim", "what"),
    [(2, 1, "engine"), (3, 2, "process"), (4, 1, "engine"), (3, 0, "engine"), (2, 0, "process")],
)
def test_killed_during_a_collective(own_ranks, backend, size, victim, what):
    group = own_ranks(size)
    pids = form(group, size, backend)
    for rank in range(size):
        group.all[rank].start(cases.stream, LARGE, 20)
    time.sleep(0.4)
    killed = time.monotonic()
    kill(group, victim, what, pids)
    results = {rank: group.all[rank].result() for rank in range(size) if rank != victim}
    print("seconds until the error:", [round(result[1] - killed, 3) for result in results.values()])
    check_survivors(group, results, victim)


@pytest.mark.parametrize("backend", ["shm", "gloo"])
def test_killed_during_a_receive_from_any_rank(own_ranks, backend):
    group = own_ranks(3)
    pids = form(group, 3, backend)
    group.all[0].start(cases.receive_from_any)
    time.sleep(0.4)
    kill(group, 2, "engine", pids)
    assert "rank 2" in group.all[0].result()


@pytest.mark.parametrize("backend", ["shm", "gloo"])
@pytest.mark.parametrize(("size", "victim", "what"), [(3, 1, "engine"), (2, 1, "process"), (3, 0, "engine")])
def test_killed_between_collectives(own_ranks, backend, size, victim, what):
    group = own_ranks(size)
    pids = form(group, size, backend)
    kill(group, victim, what, pids)
    if what == "engine":
        time.sleep(0.2)
    survivors = [rank for rank in range(size) if rank != victim]
    results = on_all(group, survivors, cases.stream, 4, 20)
    check_survivors(group, results, victim)


@pytest.mark.parametrize("backend", ["shm", "gloo"])
@pytest.mark.parametrize("victim", [1, 0])
def test_stopped_engine_is_named(own_ranks, backend, victim):
    """A stopped engine breaks no connection; it does not answer the pings of its connections."""
    group = own_ranks(3)
    pids = form(group, 3, backend)
    for rank in range(3):
        group.all[rank].start(cases.stream, LARGE, 40)
    time.sleep(0.4)
    os.kill(pids[victim], signal.SIGSTOP)
    try:
        survivors = [rank for rank in range(3) if rank != victim]
        results = {rank: group.all[rank].result() for rank in survivors}
        check_survivors(group, results, victim)
    finally:
        os.kill(pids[victim], signal.SIGKILL)


@pytest.mark.parametrize("backend", ["shm", "gloo"])
def test_stopped_engine_within_a_short_timeout(own_ranks, backend):
    group = own_ranks(3)
    pids = form(group, 3, backend, timeout=2)
    for rank in range(3):
        group.all[rank].start(cases.stream, LARGE, 40)
    time.sleep(0.4)
    os.kill(pids[2], signal.SIGSTOP)
    try:
        results = {rank: group.all[rank].result() for rank in (0, 1)}
        check_survivors(group, results, 2)
    finally:
        os.kill(pids[2], signal.SIGKILL)


@pytest.mark.parametrize("backend", ["shm", "gloo"])
@pytest.mark.parametrize(("victim", "how"), [(1, signal.SIGKILL), (0, signal.SIGKILL), (1, signal.SIGSTOP)])
def test_lost_during_formation(own_ranks, backend, victim, how):
    """Two of three ranks wait for the third, when one of them is lost."""
    group = own_ranks(4)
    pids = on_all(group, range(4), cases.engine_pid)
    port = free_port()
    waiting = [rank for rank in range(4) if rank != 3]
    for rank in waiting:
        group.all[rank].start(cases.form, rank, 4, port, backend, 30)
    time.sleep(1)
    os.kill(pids[victim], how)
    try:
        for rank in waiting:
            if rank != victim:
                message, seconds = group.all[rank].result()
                assert f"rank {victim}" in message
                assert seconds < 25, "the error came after the timeout"
                print("seconds until the error:", seconds - 1)
    finally:
        os.kill(pids[victim], signal.SIGKILL)
    members = [rank for rank in range(4) if rank != victim]
    port = free_port()
    for rank in members:
        group.all[rank].start(cases.form_again, rank, 4, port, members)
    for rank in members:
        assert group.all[rank].result() == [sum(members)] * 3


def test_rank_continues_with_a_new_engine(own_ranks):
    group = own_ranks(2)
    pids = form(group, 2, "gloo")
    kill(group, 1, "engine", pids)
    group.all[1].start(cases.new_engine)
    assert group.all[1].result() != pids[1]
    port = free_port()
    for rank in (0, 1):
        group.all[rank].start(cases.form_again, rank, 2, port, [0, 1])
    assert [group.all[rank].result() for rank in (0, 1)] == [[1] * 3] * 2


def test_the_flight_recorder_has_the_calls_of_all_ranks(ranks):
    results = ranks.run(3, cases.records_of_all)
    for rank, result in enumerate(results):
        assert "rank 1" in result["message"]
        own = result[str(rank)]
        message, last = [["send"], ["receive"], []][rank], ["broadcast" if rank == 1 else "all_reduce"]
        assert [r[0] for r in own] == ["all_reduce", *message, *last]
        assert own[0][1:3] == ["complete", 300] and "failure_cases.py" in own[0][3]
        assert own[-1][1] == "failed" and "rank 1" in own[-1][4]
    # The ranks that waited have published their records.
    assert results[0]["2"] == results[2]["2"] and results[2]["0"][-1][0] == "all_reduce"


def test_stores_of_earlier_groups_end(own_ranks):
    group = own_ranks(2)
    ports = [free_port() for _ in range(20)]  # more than a session may serve
    first, second = group.run_without_group(2, cases.stores_of_earlier_groups, ports)
    assert first <= second + 3
