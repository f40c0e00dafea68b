"""Calls that differ between ranks, failed tensors, and lost or missing ranks."""

from __future__ import annotations

import pytest

from ..ranks import free_port
from . import error_cases as cases

pytestmark = pytest.mark.slow


def lines(messages: list[str], *parts: str) -> None:
    """Checks that the message of every rank contains the parts."""
    for rank, message in enumerate(messages):
        for part in parts:
            assert part in message, f"rank {rank}: expected {part!r} in {message!r}"


def test_different_shapes(ranks):
    results = ranks.run(2, cases.different_shapes)
    lines(
        [r[0] for r in results],
        "rank 0 called all_reduce of 3 float32",
        "rank 1 called all_reduce of 4 float32",
        "error_cases.py",
    )
    assert [r[1] for r in results] == [[2.0, 2.0]] * 2  # the group continues
    assert [r[2] for r in results] == [[1.0] * 3, [1.0] * 4]  # nothing was written


def test_different_dtypes(ranks):
    lines([r[0] for r in ranks.run(2, cases.different_dtypes)], "of 3 float32", "of 3 float64")


def test_different_collectives(ranks):
    messages = [r[0] for r in ranks.run(3, cases.different_collectives)]
    lines(messages, "rank 0 called all_reduce", "rank 1 called broadcast", "in different_collectives")


def test_different_reductions(ranks):
    lines([r[0] for r in ranks.run(2, cases.different_reductions)], "with sum", "with max")


def test_different_order(ranks):
    for first, second in ranks.run(2, cases.different_order):
        assert "rank 0 called all_reduce of 2" in first + second and "rank 1 called all_reduce of 5" in first + second


def test_barrier_against_another_collective(ranks):
    lines(
        [r[0] for r in ranks.run(2, cases.barrier_against_all_reduce)],
        "rank 0 called barrier",
        "rank 1 called all_reduce",
    )


def test_failed_tensor_is_reported_on_all_ranks(ranks):
    results = ranks.run(3, cases.failed_tensor)
    assert "IndexError" in results[1][0]
    lines(
        [results[0][0], results[2][0]],
        "RuntimeError",
        "rank 1 called all_reduce with a failed tensor",
        "error_cases.py",
    )
    assert [r[1] for r in results] == [3.0] * 3


def test_failed_tensor_in_an_asynchronous_collective(ranks):
    results = ranks.run(2, cases.failed_tensor_async)
    assert "rank 1 called all_reduce with a failed tensor" in results[0][0]
    assert [r[1:] for r in results] == [[False, 2.0]] * 2


def test_unequal_splits(ranks):
    messages = [r[0] for r in ranks.run(2, cases.unequal_splits)]
    assert "rank 1 sends 2 items to rank 0, which expects 1" in messages[0]


def test_unequal_message(ranks):
    messages = [r[0] for r in ranks.run(2, cases.unequal_message)]
    assert "16 bytes" in messages[1] and "12 bytes" in messages[1]


@pytest.mark.parametrize(
    ("what", "collective"), [("process", "all_reduce"), ("process", "barrier"), ("engine", "all_reduce")]
)
def test_killed_rank_is_named_and_the_others_continue(own_ranks, what, collective):
    group = own_ranks(3)
    port = free_port()
    for rank in range(3):
        group.all[rank].start(cases.killed_rank, rank, 3, port, 2, collective, what)
    results = [group.all[rank].result() for rank in (0, 1)]
    lines([r[0] for r in results], "rank 2")
    lines([r[1] for r in results], "rank 2")
    assert [r[2] for r in results] == [list(range(5))] * 2
    port = free_port()
    for rank in (0, 1):
        group.all[rank].start(cases.form_again, rank, 3, port, [0, 1])
    assert [group.all[rank].result() for rank in (0, 1)] == [[2.0, 2.0]] * 2


@pytest.mark.parametrize(("how", "missing"), [("tcp", 1), ("file", 2)])
def test_missing_rank_is_named(ranks, tmp_path, how, missing):
    messages = ranks.run_without_group(3, cases.missing_rank, free_port(), missing, how, str(tmp_path / "store"))
    lines([m for r, m in enumerate(messages) if r != missing], f"missing: rank {missing}")


def test_rank_that_does_not_call_a_collective_is_named(ranks):
    messages = ranks.run_without_group(3, cases.missing_in_collective, free_port())
    lines([messages[0], messages[2]], "rank 1")


def test_monitored_barrier_names_missing_ranks(ranks):
    results = ranks.run(3, cases.missing_in_monitored_barrier, wait_all_ranks=True)
    assert results[0][0] == "[Rank 0]: Ranks 1, 2 failed to pass monitoredBarrier in 500 ms"
    assert "Ranks 1, 2 failed to pass" in results[0][1]
    results = ranks.run(3, cases.missing_in_monitored_barrier, wait_all_ranks=False)
    assert results[0][0] == "[Rank 0]: Rank 1 failed to pass monitoredBarrier in 500 ms"


def test_monitored_barrier_without_time(ranks):
    message = ranks.run(2, cases.monitored_barrier_without_time)[0]
    assert message == "[Rank 0]: Rank 0 timed out in monitoredBarrier after 0 ms. Ranks 1 did not arrive"


def test_abort_gives_its_reason_on_all_ranks(ranks):
    lines(ranks.run(3, cases.aborted), "not enough data")


def test_rank_that_left_is_named(ranks):
    results = ranks.run(3, cases.departed)
    assert [r[0] for r in results[1:]] == [6.0, 6.0]
    lines([r[1] for r in results[1:]], "rank 0 has left")


def test_group_without_a_rank(ranks):
    assert ranks.run(3, cases.shrunk) == [[0, 2], [], [1, 2]]
