"""ZeroRedundancyOptimizer: the same training as on one engine, and its state."""

from __future__ import annotations

import pytest

from . import zero_cases as cases


@pytest.mark.parametrize(
    ("size", "name"), [(1, "AdamW"), (2, "AdamW"), (3, "AdamW"), (4, "AdamW"), (2, "SGD"), (2, "Adagrad")]
)
def test_parameters_are_those_of_one_engine(ranks, size, name):
    results = ranks.run(size, cases.trains, name=name)
    assert max(difference for difference, _ in results) < 1e-5
    assert sum(count for _, count in results) == 6  # each parameter's state is on one rank


def test_parameter_groups(ranks):
    assert max(ranks.run(3, cases.groups)) < 1e-5


def test_state_dict(ranks):
    for message, count, difference in ranks.run(3, cases.state):
        assert "has not been consolidated" in message
        assert count == 6
        assert difference < 1e-6


def test_rejected_arguments(ranks):
    (messages, _) = ranks.run(2, cases.rejected)
    assert len(messages) == 3, messages
