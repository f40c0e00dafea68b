"""DistributedDataParallel with embeddings whose gradients are sparse: the same training as one engine, and errors."""

from __future__ import annotations

import pytest

from . import sparse_cases as cases

pytestmark = pytest.mark.slow


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


@pytest.mark.parametrize("embedding_first", [True, False])
@pytest.mark.parametrize("only_rank", [None, 0])
@pytest.mark.parametrize("hook", [False, True])
def test_weights_with_sparse_and_strided_gradients(ranks, embedding_first, only_rank, hook):
    for errors in ranks.run(3, cases.tied, embedding_first=embedding_first, only_rank=only_rank, hook=hook):
        assert max(errors) < 1e-4


@pytest.mark.parametrize("also_strided", [True, False])
def test_sparse_gradients_of_other_weights_are_refused(ranks, also_strided):
    for error, kind, text in ranks.run(2, cases.functional, also_strided=also_strided):
        assert error < 1e-4
        assert kind == "RuntimeError" and "sparse gradients" in text and "parameters table" in text


@pytest.mark.parametrize("missing", ["embeds", "uses_layer"])
@pytest.mark.parametrize("hides", [False, True])
@pytest.mark.parametrize("options", [{"find_unused_parameters": True}, {"static_graph": True},
                                     {"find_unused_parameters": True, "hook": True}])  # fmt: skip
def test_parameters_that_one_rank_uses(ranks, missing, hides, options):
    assert max(ranks.run(2, cases.selective, missing=missing, hides=hides, **options)) < 1e-4


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("options", [{"find_unused_parameters": True}, {"static_graph": True},
                                     {"find_unused_parameters": True, "hook": True}])  # fmt: skip
def test_random_uses_of_parameters(ranks, size, options):
    assert max(ranks.run(size, cases.random_uses, **options)) < 1e-3


def test_missing_strided_gradients_are_an_error_of_all_ranks(ranks):
    (kind, text), (other_kind, other_text) = ranks.run(2, cases.no_strided_gradient)
    assert kind == other_kind == "RuntimeError"
    assert "rank 1 computed no gradient for parameters layer.weight layer.bias" in text
    assert "layer.weight layer.bias" in other_text and "find_unused_parameters=True" in other_text


@pytest.mark.parametrize("kind", ["plain", "add_", "relu_", "list", "views", "parameter", "sparse", "nested"])
@pytest.mark.parametrize("hook", [False, True])
def test_outputs(ranks, kind, hook):
    assert max(ranks.run(2, cases.outputs, kind=kind, hook=hook)) < 1e-4


def test_gradients_of_gradients(ranks):
    assert max(ranks.run(2, cases.penalized)) < 1e-4


@pytest.mark.parametrize("between", ["no_grad", "no_sync"])
@pytest.mark.parametrize(("layout", "hook"), [("sparse", False), ("strided", False), ("sparse", True)])
def test_forward_passes_before_backward(ranks, layout, between, hook):
    assert max(ranks.run(2, cases.forward_between, layout=layout, between=between, hook=hook)) < 1e-4


@pytest.mark.parametrize("use_reentrant", [False, True])
@pytest.mark.parametrize("hook", [False, True])
def test_activation_checkpointing(ranks, use_reentrant, hook):
    assert max(ranks.run(2, cases.checkpointed, use_reentrant=use_reentrant, hook=hook)) < 1e-4


@pytest.mark.parametrize("hook", [False, True])
def test_passes_without_gradients(ranks, hook):
    assert max(ranks.run(2, cases.foreign_passes, hook=hook)) < 1e-4


def test_two_modules(ranks):
    assert max(ranks.run(2, cases.two_modules, find_unused_parameters=True)) < 1e-4


@pytest.mark.parametrize("name", ["allreduce_hook", "powerSGD_hook"])
def test_default_hooks_called_by_hooks(ranks, name):
    assert max(ranks.run(2, cases.default_hook_called_by_a_hook, name=name)) < 1e-4


@pytest.mark.parametrize("name", ["powerSGD_hook", "batched_powerSGD_hook"])
def test_compression_averages_sparse_gradients_exactly(ranks, name):
    for errors in ranks.run(2, cases.compresses, name=name):
        assert max(errors) < 1e-4


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
