"""context_parallel: values and gradients of attention are those of one engine."""

from __future__ import annotations

import pytest

from . import context_parallel_cases as cases

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("method", ["allgather", "alltoall"])
@pytest.mark.parametrize(("is_causal", "balanced"), [(False, True), (True, True), (True, False)])
def test_values_and_gradients(ranks, size, method, is_causal, balanced):
    for differences in ranks.run(size, cases.compares, is_causal=is_causal, balanced=balanced, method=method):
        assert max(differences) < 1e-5


@pytest.mark.parametrize("method", ["allgather", "alltoall"])
@pytest.mark.parametrize(("dtype", "limit"), [("float64", 1e-12), ("bfloat16", 4e-2), ("float16", 5e-3)])
def test_dtypes(ranks, dtype, limit, method):
    for differences in ranks.run(4, cases.compares, dtype=dtype, method=method):
        assert max(differences) < limit


@pytest.mark.parametrize("options", [{"scale": 0.05}, {"chunk": 1}, {"chunk": 100}])
def test_options(ranks, options):
    for differences in ranks.run(2, cases.compares, **options):
        assert max(differences) < 1e-5


@pytest.mark.parametrize("method", ["allgather", "alltoall"])
def test_other_lengths_and_numbers_of_heads(ranks, method):
    assert max(max(d) for d in ranks.run(3, cases.other_lengths, method=method)) < 1e-12


@pytest.mark.parametrize(("size", "method"), [(2, "allgather"), (4, "alltoall")])
def test_training_is_that_of_one_engine(ranks, size, method):
    assert max(max(d) for d in ranks.run(size, cases.trains, method=method)) < 1e-5


def test_one_dimension_of_a_mesh(ranks):
    assert max(max(d) for d in ranks.run(4, cases.within_a_mesh)) < 1e-5


def test_attention_does_not_wait(ranks):
    assert ranks.run(3, cases.does_not_wait) == [0] * 3


def test_over_the_network(own_ranks):
    group = own_ranks(3, TELETENSOR_GROUP_BACKEND="gloo")
    for method in ("allgather", "alltoall"):
        for differences in group.run(3, cases.compares, method=method):
            assert max(differences) < 1e-5


def test_rejected_calls(ranks):
    kinds = ["NotImplementedError", "ValueError", "ValueError", "ValueError", "RuntimeError", "NotImplementedError",
             "NotImplementedError", "ValueError", "NotImplementedError", "ValueError", "NotImplementedError", "ValueError",
             "cannot resize variables that require grad", "invalid", "True"]  # fmt: skip
    assert ranks.run(2, cases.rejected) == [kinds] * 2
