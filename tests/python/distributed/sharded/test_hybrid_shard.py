"""Parameters that are divided within groups and replicated between them."""

from __future__ import annotations

import pytest

from . import hybrid_shard_cases as cases

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("options", [
    {}, {"given": "groups"}, {"given": "hosts"}, {"strategy": "_HYBRID_SHARD_ZERO2"}, {"use_orig_params": True},
])  # fmt: skip
def test_wrapper(ranks, options):
    for loss, parameters, state, stored in ranks.run(4, cases.wrapper, **options):
        assert max(loss, parameters, state) < 1e-5
        assert 0.4 < stored < 0.6


@pytest.mark.parametrize(("shape", "options"), [((2, 2), {}), ((2, 2), {"reshard_after_forward": True}),
                                                ((2, 2), {"reshard_after_forward": False}), ((4, 1), {}), ((1, 4), {})])  # fmt: skip
def test_fully_shard(ranks, shape, options):
    results = ranks.run(4, cases.in_place, shape=shape, **options)
    assert max(max(loss, parameters) for loss, parameters, _ in results) < 1e-5
    assert sum(stored for _, _, stored in results) == pytest.approx(shape[0])


def test_accumulated_gradients(ranks):
    assert max(ranks.run(4, cases.accumulates)) < 1e-5


def test_divide_factor(ranks):
    assert max(ranks.run(4, cases.divides)) < 1e-6


def test_clip_grad_norm(ranks):
    for norm, parameters in ranks.run(4, cases.clips):
        assert norm < 1e-4
        assert parameters < 1e-5


def test_an_overflow_skips_the_step_on_all_ranks(ranks):
    assert ranks.run(4, cases.skips_a_step) == [[True, True]] * 4


def test_optimizer_state(ranks):
    assert max(ranks.run(4, cases.optimizer_state)) < 1e-6


def test_rejected_arguments(ranks):
    expected = ["Manual wrapping", "LOCAL_WORLD_SIZE", "None or Tuple", "expected a mesh with 2", "expected a mesh with 1",
                "expected HYBRID_SHARD", "Cannot pass both", "one or two dimensions"]  # fmt: skip
    for messages in ranks.run(4, cases.rejected):
        assert all(e in m for e, m in zip(expected, messages, strict=True)), messages
