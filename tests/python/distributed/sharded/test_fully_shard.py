"""fully_shard: the same training as on one engine, and the methods that it adds to modules."""

from __future__ import annotations

import pytest

from . import fully_shard_cases as cases
from .fsdp_cases import tower


@pytest.mark.parametrize(("size", "options"), [(1, {}), (2, {}), (3, {}), (4, {}), (2, {"reshard_after_forward": True}),
                                               (2, {"reshard_after_forward": False}), (2, {"offload": True})])  # fmt: skip
def test_parameters_are_those_of_one_engine(ranks, size, options):
    results = ranks.run(size, cases.trains, **options)
    assert max(result[0] for result in results) < 1e-5
    assert sum(result[1] for result in results) == sum(p.numel() for p in tower().parameters())
    assert all(result[2:] == [True, "FSDPTower", True] for result in results)


def test_gradients_accumulate(ranks):
    assert max(ranks.run(3, cases.accumulates)) < 1e-5


def test_mixed_precision(ranks):
    assert ranks.run(2, cases.mixed_precision) == [["torch.bfloat16", "torch.float32", "torch.float32"]] * 2


@pytest.mark.parametrize("norm_type", [2.0, float("inf")])
def test_clip_grad_norm(ranks, norm_type):
    for norm, parameters in ranks.run(3, cases.clips, norm_type=norm_type):
        assert norm < 1e-4
        assert parameters < 1e-5


def test_sharded_state_dict(ranks):
    assert ranks.run(3, cases.state_dict) == [0] * 3


def test_methods(ranks):
    for differences in ranks.run(2, cases.methods):
        assert max(differences) < 1e-5


def test_parameters_keep_their_shapes(ranks):
    results = ranks.run(2, cases.parameters)
    assert [result[2] for result in results] == [[9, 3, 5, 1], [6, 2, 0, 0]]
    for difference, shapes, _, placements, size, is_distributed, has_state in results:
        assert difference < 1e-5
        assert shapes == [(5, 3), (5,), (1, 5), (1,)] or shapes == [[5, 3], [5], [1, 5], [1]]
        assert (placements, size, is_distributed, has_state) == (["S(0)"], 2, True, True)


def test_activation_checkpoints_prefetch_and_placement(ranks):
    assert max(max(differences) for differences in ranks.run(2, cases.checkpoints)) < 1e-5


def test_passes_that_are_repeated_or_interrupted(ranks):
    for before, is_error, after in ranks.run(2, cases.passes):
        assert max(before, after) < 1e-5
        assert is_error


def test_full_state_dicts_and_meta_device(ranks):
    assert ranks.run(2, cases.state_dicts) == [[rank == 0, 0, True, True] for rank in range(2)]


def test_unused_parameters(ranks):
    assert ranks.run(2, cases.unused) == [[[True, True], [True, False], 0.0]] * 2


def test_grad_scaler(ranks):
    for scale, difference in ranks.run(2, cases.scales):
        assert scale == 4
        assert difference < 1e-5


def test_over_tensor_parallelism(ranks):
    for difference, shape in ranks.run(4, cases.tensor_parallel):
        assert difference < 1e-5
        assert shape == [10, 20]


def test_rejected_arguments(ranks):
    (messages, _) = ranks.run(2, cases.rejected)
    assert len(messages) == 8, messages
