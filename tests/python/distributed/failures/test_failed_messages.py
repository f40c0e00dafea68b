"""A failed tensor that is sent is an error of the receiver at once, and later messages arrive."""

from __future__ import annotations

import pytest

from . import failed_message_cases as cases

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("asynchronous", [False, True])
def test_failed_tensor(ranks, asynchronous):
    results = ranks.run(2, cases.sends, asynchronous=asynchronous)
    message, values, seconds = results[1]
    assert "rank 0 sent a failed tensor (" in message and "failed_message_cases.py" in message
    assert "index 7 is out of bounds" in message
    assert values == [1.0] * 3
    assert seconds < 25  # the group's timeout is 30 s


def test_failed_tensor_over_the_network(own_ranks):
    results = own_ranks(2, TELETENSOR_GROUP_BACKEND="gloo").run(2, cases.sends, asynchronous=True)
    assert "rank 0 sent a failed tensor (" in results[1][0]
    assert results[1][1] == [1.0] * 3


def test_failed_stage(ranks):
    for messages, seconds in ranks.run(3, cases.pipeline):
        assert "index out of range" in messages[0]
        assert messages[1] == "finite: True"
        assert seconds < 25
