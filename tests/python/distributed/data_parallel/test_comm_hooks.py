"""Communication hooks in Python, and PowerSGD."""

from __future__ import annotations

import pytest

from . import comm_hook_cases as cases


@pytest.mark.parametrize("size", [1, 2, 4])
def test_parameters_are_those_of_one_engine(ranks, size):
    for result, buckets in ranks.run(size, cases.trains):
        assert result < 1e-5
        assert buckets == [[0, True, 6]]


def test_buckets(ranks):
    for result, buckets in ranks.run(2, cases.trains, bucket_cap_mb=0.001):
        assert result < 1e-5
        assert [b[0] for b in buckets] == list(range(len(buckets)))
        assert [b[1] for b in buckets] == [False] * (len(buckets) - 1) + [True]
        assert len(buckets) > 1 and sum(b[2] for b in buckets) == 6


def test_accumulated_gradients(ranks):
    assert max(ranks.run(3, cases.accumulates)) < 1e-5


def test_passes_of_several_modules(ranks):
    assert max(ranks.run(2, cases.two_modules)) < 1e-5


def test_other_outputs(ranks):
    assert max(max(d) for d in ranks.run(2, cases.other_outputs)) < 1e-5


def test_unused_parameters(ranks):
    expected = [None, *[[1.5] * 4] * 2, None, None]
    assert ranks.run(2, cases.unused) == [expected] * 2


def test_unused_parameters_without_the_option(ranks):
    for rank, message in enumerate(ranks.run(2, cases.unused_without_the_option)):
        assert f"got none for parameters never parts.{1 - rank}.weight" in message


@pytest.mark.parametrize(("name", "dtype", "limit"), [("fp16_compress", "torch.float16", 2e-3),
                                                      ("bf16_compress", "torch.bfloat16", 2e-2)])  # fmt: skip
def test_wrappers(ranks, name, dtype, limit):
    for differences, dtypes in ranks.run(2, cases.wrapped, name=name):
        assert 0 < max(differences) < limit
        assert dtypes == [dtype]


@pytest.mark.parametrize("hook", ["powerSGD_hook", "batched_powerSGD_hook"])
@pytest.mark.parametrize("options", [{}, {"use_error_feedback": False}, {"warm_start": False},
                                     {"batch_tensors_with_same_shape": True}])  # fmt: skip
def test_power_sgd_with_full_rank_is_exact(ranks, hook, options):
    for differences in ranks.run(2, cases.full_rank, hook=hook, **options):
        assert max(differences[:2]) < 1e-6
        assert max(differences) < 1e-3


@pytest.mark.parametrize("options", [{}, {"orthogonalization_epsilon": 1e-8}, {"warm_start": False}])
def test_power_sgd_of_low_rank(ranks, options):
    for exact, error, equal in ranks.run(3, cases.low_rank, **options):
        assert exact < 1e-4
        assert 0.1 < error < 2
        assert equal


def test_error_feedback(ranks):
    assert max(ranks.run(2, cases.mean_of_steps, use_error_feedback=True)) < 0.1
    assert min(ranks.run(2, cases.mean_of_steps, use_error_feedback=False)) > 0.3


def test_power_sgd_converges(ranks):
    for first, last, rate in ranks.run(2, cases.converges):
        assert last < 0.1 < 0.9 < first
        assert rate > 2


def test_power_sgd_does_not_wait(ranks):
    assert ranks.run(2, cases.does_not_wait) == [0, 0]


def test_power_sgd_of_compressed_gradients(ranks):
    assert 0 < max(ranks.run(2, cases.compressed_twice)) < 2e-2


def test_register_by_type(ranks):
    for differences in ranks.run(2, cases.by_type):
        assert max(differences) < 2e-2
        assert sum(d < 1e-5 for d in differences) == len(differences) - 2


def test_rejected_arguments(ranks):
    expected = ["TypeError", "NotImplementedError", "ValueError", "NotImplementedError"]
    assert ranks.run(2, cases.rejected) == [expected] * 2
