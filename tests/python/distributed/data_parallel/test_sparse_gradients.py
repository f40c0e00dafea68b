"""DistributedDataParallel with embeddings whose gradients are sparse: the same training as one engine, and errors."""

from __future__ import annotations

import pytest

from . import sparse_cases as cases


@pytest.mark.parametrize("size", [1, 2, 3])
def test_parameters_are_those_of_one_engine(ranks, size):
    for difference, is_sparse in ranks.run(size, cases.trains):
        assert difference < 1e-5 and is_sparse


@pytest.mark.parametrize("options", [{"layers": False}, {"find_unused_parameters": True}, {"static_graph": True}])
def test_options(ranks, options):
    for difference, is_sparse in ranks.run(2, cases.trains, **options):
        assert difference < 1e-5 and is_sparse


@pytest.mark.parametrize(("hook", "limit"), [(None, 1e-6), ("allreduce_hook", 1e-6), ("fp16_compress_hook", 2e-3),
                                             ("bf16_compress_hook", 2e-2)])  # fmt: skip
def test_gradients(ranks, hook, limit):
    assert max(ranks.run(2, cases.gradients, hook=hook)) < limit


def test_accumulation(ranks):
    assert max(ranks.run(2, cases.accumulates)) < 1e-5


@pytest.mark.parametrize("options", [{"find_unused_parameters": True}, {"static_graph": True}])
def test_unused_parameters(ranks, options):
    assert ranks.run(2, cases.unused, **options) == [[True] * 3] * 2


def test_a_missing_gradient_is_an_error_of_all_ranks(ranks):
    for kind, text in ranks.run(2, cases.missing):
        assert kind == "RuntimeError" and "bags.weight" in text and "find_unused_parameters=True" in text


def test_a_strided_gradient_is_refused(ranks):
    for kind, text in ranks.run(2, cases.tied):
        assert kind == "RuntimeError" and "words.weight" in text and "sparse_coo" in text


@pytest.mark.parametrize("options", [{}, {"find_unused_parameters": True}])
def test_hooks_in_python(ranks, options):
    for difference, kinds in ranks.run(2, cases.hooks_in_python, **options):
        assert difference < 1e-5 and sorted(kinds) == [[False, 4, 4], [True, 1, 1], [True, 1, 1]]
    assert ranks.run(2, cases.hook_with_unused_parameters) == [[True, True]] * 2


def test_passes_of_other_modules(ranks):
    assert ranks.run(2, cases.other_module) == [True, True]


@pytest.mark.parametrize("layers", [True, False])
def test_join(ranks, layers):
    assert max(ranks.run(3, cases.joins, layers=layers)) < 1e-5


def test_replicate_and_copies(ranks):
    assert max(ranks.run(2, cases.replicated)) < 1e-5
    assert max(ranks.run(2, cases.pickled)) < 1e-5
