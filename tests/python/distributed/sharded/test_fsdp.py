"""FullyShardedDataParallel: the same training as on one engine, state dicts, memory."""

from __future__ import annotations

import pytest

from . import fsdp_cases as cases

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_parameters_are_those_of_one_engine(ranks, size):
    assert max(ranks.run(size, cases.trains)) < 1e-5


@pytest.mark.parametrize("strategy", ["FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD"])
@pytest.mark.parametrize("use_orig_params", [False, True])
def test_strategies(ranks, strategy, use_orig_params):
    assert max(ranks.run(2, cases.trains, strategy=strategy, use_orig_params=use_orig_params)) < 1e-5


@pytest.mark.parametrize("policy", ["none", "size", "transformer", "custom"])
def test_policies(ranks, policy):
    assert max(ranks.run(2, cases.trains, policy=policy)) < 1e-5


@pytest.mark.parametrize("prefetch", ["BACKWARD_POST", None])
def test_prefetch(ranks, prefetch):
    assert max(ranks.run(3, cases.trains, prefetch=prefetch)) < 1e-5


def test_nested_values_and_units(ranks):
    assert max(ranks.run(2, cases.nested_values)) < 1e-5


def test_dropout_draws_the_same_numbers_in_backward(ranks):
    assert max(ranks.run(2, cases.dropout)) < 1e-5


def test_buffers_change_once_per_step(ranks):
    assert all(max(differences) < 1e-5 for differences in ranks.run(2, cases.buffers))


def test_no_sync_accumulates(ranks):
    assert max(ranks.run(3, cases.accumulates)) < 1e-5


@pytest.mark.parametrize("norm_type", [2.0, 1.0, float("inf")])
@pytest.mark.parametrize("use_orig_params", [False, True])
def test_clip_grad_norm(ranks, norm_type, use_orig_params):
    for norm, parameters in ranks.run(2, cases.clips, norm_type=norm_type, use_orig_params=use_orig_params):
        assert norm < 1e-4
        assert parameters < 1e-5


@pytest.mark.parametrize("use_orig_params", [False, True])
def test_full_state_dict(ranks, use_orig_params):
    results = ranks.run(3, cases.full_state, use_orig_params=use_orig_params)
    assert all(result[:2] == [0, 0] and result[3] for result in results)
    assert [result[2] for result in results] == [20, 0, 0]


@pytest.mark.parametrize("kind", ["SHARDED_STATE_DICT", "LOCAL_STATE_DICT"])
def test_sharded_state_dict(ranks, kind):
    results = ranks.run(2, cases.sharded_state, kind=kind)
    assert all(difference == 0 for difference, _ in results)
    numel = sum(p.numel() for p in cases.tower().parameters())
    assert numel <= sum(count for _, count in results) <= numel + 4


@pytest.mark.parametrize("use_orig_params", [False, True])
def test_optimizer_state_dict(ranks, use_orig_params):
    for result in ranks.run(2, cases.optimizer_state, use_orig_params=use_orig_params):
        assert max(result[:2]) < 1e-5
        assert result[2] == 20


def test_summon_full_params(ranks):
    assert ranks.run(2, cases.summons) == [[True, 0], [True, 0]]


def test_mixed_precision(ranks):
    for dtype, dtypes, difference in ranks.run(2, cases.mixed_precision):
        assert dtype == "torch.bfloat16"
        assert dtypes == ["torch.float32"]
        assert 0 < difference < 0.1


def test_batch_norm_keeps_its_precision(ranks):
    assert ranks.run(2, cases.batch_norm_keeps_precision) == [["torch.float32", "torch.bfloat16"]] * 2


def test_activation_checkpoints(ranks):
    assert max(ranks.run(2, cases.checkpointed)) < 1e-5


def test_ignored_parameters(ranks):
    for is_listed, difference in ranks.run(2, cases.ignored):
        assert is_listed
        assert difference < 1e-5


def test_frozen_parameters(ranks):
    assert max(ranks.run(2, cases.frozen)) < 1e-5


def test_evaluation_uses_current_parameters(ranks):
    assert max(ranks.run(2, cases.evaluates)) < 1e-5


def test_mesh_and_offload(ranks):
    assert max(ranks.run(2, cases.mesh_and_offload)) < 1e-5


def test_subgroups(ranks):
    assert max(ranks.run(4, cases.subgroup)) < 1e-5


@pytest.mark.parametrize("use_orig_params", [False, True])
def test_tied_parameters(ranks, use_orig_params):
    for difference, shares, message in ranks.run(2, cases.tied, use_orig_params=use_orig_params):
        assert difference < 1e-5
        assert shares
        assert "is shared with a module of another unit" in message


def test_two_passes_before_backward(ranks):
    assert max(ranks.run(2, cases.two_passes)) < 1e-5


def test_forward_runs_once(ranks):
    assert ranks.run(2, cases.python_state) == [[1, 1, 2.0] * 2] * 2


def test_failed_loss_is_an_error_on_all_ranks(ranks):
    assert "no error" not in ranks.run(2, cases.failed_loss)


def test_gradients_of_inputs(ranks):
    assert max(ranks.run(2, cases.input_gradients)) < 1e-5


@pytest.mark.parametrize("sharded", [False, True])
def test_grad_scaler_skips_a_step_on_all_ranks(ranks, sharded):
    for scales, difference in ranks.run(2, cases.skips_steps, sharded=sharded):
        assert scales == [4, 4]
        assert difference < 1e-5


def test_memory_of_a_rank(own_ranks):
    ranks = own_ranks(4)  # in whose engines no earlier test has left memory that is freed later
    in_place, full, keeps, replicated = (
        ranks.run(4, cases.memory, strategy=s)[0] for s in ("fully_shard", "FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD")
    )
    # 8 layers: a fourth of parameters, gradients and two moments, which is 8 layers.
    assert full["held"] < 8.3
    assert full["forward"] < 0.1
    assert full["peak"] < 5  # one unit, the next one, and their gradients
    assert in_place["held"] < 8.3
    assert in_place["forward"] < 0.1
    assert in_place["peak"] < 5
    assert keeps["held"] < 8.3
    assert 6.9 < keeps["forward"] < 8.3  # backward does not need the weight of the first layer
    assert 31 < replicated["held"] < 33


def test_rejected_arguments(ranks):
    (messages, _) = ranks.run(2, cases.rejected)
    assert len(messages) == 12, messages
