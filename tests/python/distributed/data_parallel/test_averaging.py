"""Averages of parameters instead of gradients: model averagers, PostLocalSGDOptimizer and its communication hook."""

from __future__ import annotations

import pytest

from . import averaging_cases as cases


def test_parameters_are_averaged(ranks):
    assert ranks.run(3, cases.averages) == [[1.0, 10.0, 0.5], [1.0, 10.0, 0.5], [1.0, 10.0, 2.0]]


def test_periodic_averages(ranks):
    assert ranks.run(3, cases.periodic) == [[r, 1.0, r, 1.0, r] for r in range(3)]


def test_hierarchical_averages(ranks):
    pairs = [0.5, 0.5, 2.5, 2.5]
    assert ranks.run(4, cases.hierarchical) == [[r, r, pairs[r], r, 1.5, r] for r in range(4)]


def test_optimizer(ranks):
    # Step 0: r. Step 1: the average of 2 r, 2. Step 2: 2 + r.
    assert ranks.run(3, cases.optimizer) == [[r, 2.0, 2.0 + r, 3, 1.0, 0, 1] for r in range(3)]


@pytest.mark.parametrize("post", [True, False])
def test_hook(ranks, post):
    later = [0.5, 0.5, 2.5, 2.5] if post else [0.0, 1.0, 2.0, 3.0]
    assert ranks.run(4, cases.hook, post=post) == [[1.5, 1.5, later[r], later[r]] for r in range(4)]


def test_invalid_arguments(ranks):
    messages = ranks.run(2, cases.rejected)[0]
    expected = ["positive value", "non-negative", "must not be empty", "equal to the size", "is not supported"]
    assert len(messages) == 5 and all(e in m for e, m in zip(expected, messages, strict=True))
