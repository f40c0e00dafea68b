"""async_op=True, futures, and messages between two ranks."""

from __future__ import annotations

import pytest

from . import async_cases as cases


@pytest.mark.parametrize("size", [1, 3])
def test_work(ranks, size):
    for result in ranks.run(size, cases.works):
        assert result["a"] >= size


def test_futures_run_callbacks_when_they_are_waited_for(ranks):
    assert ranks.run(2, cases.futures) == [[True, "raised", *[6.0] * 4]] * 2


def test_dropped_works(ranks):
    assert ranks.run(2, cases.dropped) == [2.0 * 3 * sum(range(100))] * 2


def test_asynchronous_writes_to_views(ranks):
    ranks.run(3, cases.strided_output)


@pytest.mark.parametrize("size", [2, 4])
def test_ring_of_messages(ranks, size):
    ranks.run(size, cases.ring)


def test_messages_in_both_directions(ranks):
    ranks.run(2, cases.both_directions)


def test_messages_within_a_group(ranks):
    assert ranks.run(4, cases.within_group) == [[0], [1], [2], [1]]


def test_receive_from_any_rank_is_rejected(ranks):
    assert all("expected the sender's rank" in message for message in ranks.run(2, cases.any_source))


def test_barrier_waits_for_all_ranks(ranks, tmp_path):
    assert ranks.run(3, cases.barrier_waits, path=str(tmp_path / "done")) == [True] * 3


def test_collectives_return_before_they_are_complete(ranks):
    assert ranks.run(2, cases.collectives_return_at_once) == [True] * 2


def test_collectives_of_pending_results(ranks):
    ranks.run(2, cases.products)
