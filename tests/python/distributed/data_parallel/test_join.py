"""Join: loops of different lengths on the ranks."""

from __future__ import annotations

import pytest

from . import join_cases as cases


@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_uneven_inputs(ranks, size, zero):
    assert max(ranks.run(size, cases.uneven, zero=zero)) < 1e-5


def test_buffers(ranks):
    first, second = ranks.run(2, cases.buffers)
    assert first == second


def test_early_termination_is_an_error_on_all_ranks(ranks):
    messages = ranks.run(2, cases.throws)
    assert messages == [
        "Rank 0 exhausted all inputs.",
        "Detected at least one rank that exhausted inputs. Throwing across all ranks.",
    ]


def test_joinables_with_their_own_hooks(ranks):
    assert ranks.run(3, cases.custom) == [[9, [False]], [9, [False]], [9, [True]]]


def test_rejected_arguments(ranks):
    (messages, _) = ranks.run(2, cases.rejected)
    assert len(messages) == 3, messages
