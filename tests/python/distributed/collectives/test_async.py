"""async_op=True, futures, and messages between two ranks."""

from __future__ import annotations

import pytest

from ..ranks import Ranks
from . import async_cases as cases

pytestmark = pytest.mark.slow


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


@pytest.fixture(scope="module", params=["shm", "gloo"])
def transport_ranks(ranks, request):  # `ranks` skips runs without private engines
    group = Ranks(4, TELETENSOR_GROUP_BACKEND=request.param)
    yield group
    group.stop()


@pytest.mark.parametrize("size", [2, 3, 4])
def test_receive_from_any_rank(transport_ranks, size):
    assert transport_ranks.run(size, cases.any_source_one_size, count=20) == [
        [r for r in range(size) if r != rank] for rank in range(size)
    ]


def test_large_messages_from_any_rank(transport_ranks):
    assert transport_ranks.run(4, cases.any_source, count=3)[0] == [1, 1, 1, 2, 2, 2, 3, 3, 3]


def test_receive_from_any_rank_between_others(transport_ranks):
    assert transport_ranks.run(3, cases.any_source_between)[0] == [1, 2, 2, 3, 5, 2]


def test_receive_from_any_rank_of_a_group(transport_ranks):
    assert transport_ranks.run(4, cases.any_source_in_group)[1] == [3, 3]


def test_errors_of_receives_from_any_rank(transport_ranks):
    first, second = transport_ranks.run(2, cases.any_source_errors)[0]
    assert "rank 1 sent a failed tensor" in first
    assert "index 7 is out of bounds" in first
    assert "expected 8 bytes of float32 from rank 1, got 16 bytes of int64" in second


def test_timeout_of_a_receive_from_any_rank(transport_ranks):
    message = transport_ranks.run(3, cases.any_source_timeout)[0].lower()
    assert "timed out" in message or "application timeout" in message  # or gloo has closed the pair already


def test_barrier_waits_for_all_ranks(ranks, tmp_path):
    assert ranks.run(3, cases.barrier_waits, path=str(tmp_path / "done")) == [True] * 3


def test_collectives_return_before_they_are_complete(ranks):
    assert ranks.run(2, cases.collectives_return_at_once) == [True] * 2


def test_collectives_of_pending_results(ranks):
    ranks.run(2, cases.products)
