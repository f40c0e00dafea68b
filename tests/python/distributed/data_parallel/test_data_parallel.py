"""DistributedDataParallel: the same gradients as one engine, buckets, unused parameters, errors."""

from __future__ import annotations

import pytest

from ..ranks import free_port
from . import data_parallel_cases as cases


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_parameters_are_those_of_one_engine(ranks, size):
    assert max(ranks.run(size, cases.trains)) < 1e-5


@pytest.mark.parametrize("options", [{"bucket_cap_mb": 0.001}, {"find_unused_parameters": True}, {"static_graph": True},
                                     {"gradient_as_bucket_view": True}])  # fmt: skip
def test_options(ranks, options):
    assert max(ranks.run(2, cases.trains, **options)) < 1e-5


@pytest.mark.parametrize(("hook", "limit"), [("allreduce_hook", 1e-5), ("fp16_compress_hook", 2e-3),
                                             ("bf16_compress_hook", 2e-2)])  # fmt: skip
def test_compressed_gradients(ranks, hook, limit):
    assert max(ranks.run(2, cases.compressed, name=hook)) < limit


def test_no_sync_accumulates(ranks):
    assert max(ranks.run(3, cases.accumulates)) < 1e-5


@pytest.mark.parametrize("options", [{"find_unused_parameters": True}, {"static_graph": True}])
def test_unused_parameters(ranks, options):
    # The gradient of each part is 3 on the rank that uses it.
    expected = [None, *[[1.5] * 4] * 2, None, None]
    assert ranks.run(2, cases.unused, **options) == [expected] * 2


@pytest.mark.parametrize("hook", [False, True])
@pytest.mark.parametrize("options", [{"find_unused_parameters": True}, {"static_graph": True}])
def test_parameters_used_only_in_local_passes_are_averaged(ranks, options, hook):
    expected = [None] + [[1.5] * 4] * 4
    assert ranks.run(2, cases.unused_after_local_passes, hook=hook, **options) == [expected] * 2


@pytest.mark.parametrize("options", [{}, {"static_graph": True}])
def test_backward_after_the_group_of_another_module_is_gone(ranks, options):
    expected = [[[1.0, 1.0], [1.0, 1.0]]]
    results = ranks.run_without_group(2, cases.backward_after_the_group, port=free_port(), **options)
    assert results == [expected] * 2


def test_nested_modules_are_rejected(ranks):
    assert all("contains no other DistributedDataParallel" in message for message in ranks.run(2, cases.nested))


def test_static_graph_is_set_before_the_first_pass(ranks):
    for messages in ranks.run(2, cases.late_static_graph):
        assert len(messages) == 2 and all("should be called before training loop starts" in m for m in messages)


def test_unused_parameters_without_the_option_are_named(ranks):
    messages = ranks.run(2, cases.unused_without_the_option)
    assert all("computed no gradient for parameters" in m or "got none for parameters" in m for m in messages)


def test_buffers_of_rank_0_are_used(ranks):
    assert ranks.run(2, cases.buffers) == [[0.0] * 4] * 2


def test_options_of_buffers(ranks):
    first, second = ranks.run(2, cases.buffers_by_option)
    assert first == [[0.0, 2.0]] * 3
    assert second == [[0.0, 2.0], [1.0, 3.0], [0.0, 3.0]]


def test_passes_of_several_modules(ranks):
    assert max(ranks.run(2, cases.two_modules)) < 1e-5


def test_failed_loss_is_an_error_on_all_ranks(ranks):
    messages = ranks.run(2, cases.failed_loss)
    assert "no error" not in messages


def test_pass_after_a_failed_one(ranks):
    assert max(ranks.run(2, cases.recovers)) < 1e-5


def test_averages_of_large_half_gradients(ranks):
    assert ranks.run(2, cases.large_half_gradients) == [[40000.0] * 2] * 2


def test_rejected_arguments(ranks):
    (messages, _) = ranks.run(2, cases.rejected)
    assert len(messages) == 5


@pytest.mark.parametrize("options", [{}, {"find_unused_parameters": True}])
def test_recomputed_activations(ranks, options):
    assert max(ranks.run(2, cases.recomputed, **options)) < 1e-5


def test_replicated_modules(ranks):
    for result in ranks.run(2, cases.replicated):
        assert result.pop("difference") < 1e-5
        first, second = result.pop("errors")
        assert first.startswith("Each distinct composable distributed API can only be applied to a module once. replicate has")
        assert second == "Expected device_id to be int or torch.device, but got <class 'list'>"
        assert result == {"names": True, "calls": cases.STEPS + 2}


def test_wrappers_that_recompute_activations(ranks):
    (result,) = ranks.run(1, cases.wrapped)
    assert result.pop("offloaded") == 0
    for of_kind in result.values():
        assert of_kind[:5] == [2, "CheckpointWrapper", 20, True, True] and of_kind[5] < 1e-6


def test_saved_and_copied_modules(ranks):
    for result in ranks.run(2, cases.pickled):
        assert result.pop("error").startswith("DDP Pickling/Unpickling are only supported when using DDP with the default")
        assert result == {"loaded": [True, True], "copied": [True, True]}
